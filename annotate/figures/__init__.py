"""What the worker process makes for the screens of figures: use cases asked, answers laid out."""
