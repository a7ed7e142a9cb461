"""Language models that judge candidates before hardware does: accuracy and tuning.

`calibration` compares votes with hardware, `tuning` looks for better instructions.
"""
