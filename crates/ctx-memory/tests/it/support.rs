//! Configuration for tests.

use ctx_config::{Profile, Section};

/// A section under a profile.
pub(crate) fn section_of<T: Section>(profile: &str) -> T {
    let profile: Profile = profile.parse().expect("a profile");
    ctx_config::Config::for_profile(profile).section().expect("a valid section")
}
