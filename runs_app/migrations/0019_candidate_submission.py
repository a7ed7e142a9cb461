from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("runs_app", "0018_runner_compiler")]

    operations = [migrations.RenameField("candidate", "trial", "submission")]
