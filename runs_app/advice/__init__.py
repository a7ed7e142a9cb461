"""What language models say of a task: asked, stored when the answer has come, told over the API.

It is advice and gates nothing. The pages that ask are `tasks_app.curation.advice`.
"""
