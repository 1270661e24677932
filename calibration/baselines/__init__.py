"""Reference-based metrics to compare a jury with: ROUGE-L and BERTScore.

Each gives the values of the package that published it, without installing that package.
A metric that compares wording with a reference does not measure what is clinically right.
"""
