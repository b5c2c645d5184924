"""The version of trainer and octweb, in one place."""

VERSION = "0.1.0"
