//! Random values that stay: all of a release's come from the uid of its object.
//!
//! Without this a chart that makes a password would make another one in each reconcile.

use ring::digest;

/// What the random values of an object's release come from.
pub fn seed(uid: &str) -> [u8; 32] {
    let mut context = digest::Context::new(&digest::SHA256);
    context.update(b"windlass helm release\0");
    context.update(uid.as_bytes());
    let mut seed = [0; 32];
    seed.copy_from_slice(context.finish().as_ref());
    seed
}
