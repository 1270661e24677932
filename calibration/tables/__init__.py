"""Every table of the project, declared once: its columns, their fields, headings and form."""
