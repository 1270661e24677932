"""Every jury that the jurors of a study can form, ranked by its agreement with the clinicians."""
