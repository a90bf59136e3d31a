//! Values that engines keep between turns: on disk, or in memory for one run.

mod file;
mod transient;

pub use file::FileStore;
pub use transient::TransientStore;

/// Whether the key of a value contains the name of a session as a whole, between slashes: `node/NAME/3`. A name may contain
/// slashes, as paths do.
pub fn is_value_of(key: &str, name: &str) -> bool {
    // The first part is the engine.
    let key = key.splitn(3, '/').nth(2).unwrap_or(key);
    !name.is_empty()
        && key.match_indices(name).any(|(at, _)| {
            let (before, after) = (&key[..at], &key[at + name.len()..]);
            (before.is_empty() || before.ends_with('/'))
                && (after.is_empty() || after.starts_with('/'))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_belongs_to_the_session_whose_whole_name_it_contains() {
        let check = |key: &str, name: &str, expected: bool| {
            assert_eq!(is_value_of(key, name), expected, "{name} in {key}");
        };
        check("engines/lossless/head/agent:main:main", "agent:main:main", true);
        check("engines/lossless/node/s1/4", "s1", true);
        check("engines/lossless/node/s12/s1", "s1", true);
        check("engines/x/head//home/u/chat.jsonl", "/home/u/chat.jsonl", true);
        check("engines/lossless/head/agent:main:main:thread:1", "agent:main:main", false);
        check("engines/lossless/head/session-4", "session", false);
        check("engines/lossless/head/s12", "s1", false);
        check("engines/lossless/head", "", false);
        check("engines/lossless/head/s1", "lossless", false);
    }
}
