"""The screens: one function `page()` each."""
