"""The only package that reads a study's database. What serves raters never reads Authorship."""
