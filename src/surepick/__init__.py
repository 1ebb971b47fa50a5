"""surepick: find the best of many candidates from noisy measurements, with a certificate."""
