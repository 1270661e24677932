"""Reference-based baselines to hold a jury against: ROUGE-L and BERTScore.

Each gives the values of the package that published it, without installing that package.
A metric that compares wording with one reference does not know what is clinically right.
"""
