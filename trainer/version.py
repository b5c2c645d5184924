"""Define the version of trainer and octweb."""

VERSION = "0.1.0"
