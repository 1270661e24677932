"""The only package that writes to a study's database; each public function is one transaction."""
