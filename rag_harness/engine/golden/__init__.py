"""The golden suite: an experiment that retrieves and generates nothing."""
