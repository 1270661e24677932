"""Writers of tables that are laid out: HTML, Markdown and LaTeX, and CSV in full precision."""
