"""The verbs of the library, one function each; the command line parses, calls them and prints."""
