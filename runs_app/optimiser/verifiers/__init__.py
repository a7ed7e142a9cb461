"""Language models that judge candidates before hardware does: how well, and tuned by what.

`calibration` counts votes against hardware, `tuning` looks for better instructions.
"""
