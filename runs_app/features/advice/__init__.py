"""What language models say of a task: asked, stored when the answer has come, told over the API.

It is advice and gates nothing.
"""
