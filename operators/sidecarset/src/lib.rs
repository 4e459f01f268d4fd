//! SidecarSets.
