"""The files of other tools, each read as rows in columns of ours."""
