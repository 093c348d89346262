"""The command line: glue between arguments, the analysis and the reports."""
