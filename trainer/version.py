"""Define the version, in a file that the build can read alone."""

VERSION = "0.1.0"
