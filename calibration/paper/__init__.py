"""The MedHELM paper's tables and figures made anew: from a study, or from a leaderboard."""
