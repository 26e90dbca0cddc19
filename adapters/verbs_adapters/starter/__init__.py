"""What `verbspec adapter new` writes: the files of this folder, with the name of the device filled in."""
