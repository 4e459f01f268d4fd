//! The controllers a cluster needs, written as one windlass operator.
