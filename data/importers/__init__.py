"""From files to rows, one format a module. Nothing here writes to a study."""
