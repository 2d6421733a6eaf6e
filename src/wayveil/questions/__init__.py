"""What is asked of the data: one file per question, and the catalogue that lists them with their shares."""
