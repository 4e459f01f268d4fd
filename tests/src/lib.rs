//! Black-box tests of the built windlass binary, and of the shape of the house.
