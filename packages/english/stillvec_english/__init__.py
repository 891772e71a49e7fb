"""English word vectors: `stillvec.load("english")`. How they were made is in `vectors/README.md`."""
