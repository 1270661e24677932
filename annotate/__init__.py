"""The web application: clinicians rate, blinded; researchers steer."""
