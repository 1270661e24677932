"""The study in its database: one module a subject, its acts and its questions together."""
