"""Every jury of the jurors already heard, ranked without the luck of choosing."""
