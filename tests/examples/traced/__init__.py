"""Apps of real frameworks in several shapes, which note what they really do: the truth that their spans are held to."""
