//! Tool call ids in the alphabets that providers accept.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use ctx_core::CallId;

/// The ids a provider accepts. The empty id is never accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CallIdFormat {
    /// Visible ASCII except `|`, which some agents use to join two ids.
    Printable {
        /// The maximum length in characters.
        most: usize,
    },
    /// Letters, digits, `_` and `-`.
    Word {
        /// The maximum length in characters.
        most: usize,
    },
    /// Letters and digits.
    Alphanumeric {
        /// The maximum length in characters.
        most: usize,
    },
    /// Letters and digits, of a fixed length.
    Letters {
        /// The length, in characters.
        exactly: usize,
    },
}

const ALPHABET: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// The length of a generated id: 62^11 is more than 2^64.
const DERIVED_LENGTH: usize = 11;

impl CallIdFormat {
    /// Whether an id is accepted unchanged.
    #[must_use]
    pub fn takes(self, id: &str) -> bool {
        let (least, most) = match self {
            Self::Letters { exactly } => (exactly, exactly),
            Self::Printable { most } | Self::Word { most } | Self::Alphanumeric { most } => {
                (1, most)
            }
        };
        (least.max(1)..=most).contains(&id.len()) && id.chars().all(|c| self.has(c))
    }

    /// Returns an id unchanged if it is accepted, else a deterministic replacement.
    #[must_use]
    pub fn fit(self, id: &str) -> Cow<'_, str> {
        if self.takes(id) {
            return Cow::Borrowed(id);
        }
        // `call_1|fc_9`: the part before the bar is the provider's id.
        match id.split_once('|') {
            Some((first, _)) if self.takes(first) => Cow::Borrowed(first),
            _ => Cow::Owned(self.derived(id, 0)),
        }
    }

    fn has(self, c: char) -> bool {
        match self {
            Self::Printable { .. } => c.is_ascii_graphic() && c != '|',
            Self::Word { .. } => c.is_ascii_alphanumeric() || c == '_' || c == '-',
            Self::Alphanumeric { .. } | Self::Letters { .. } => c.is_ascii_alphanumeric(),
        }
    }

    /// Derives an id from another; each `attempt` gives a different one.
    fn derived(self, id: &str, attempt: u64) -> String {
        let mut seed = hash(id.as_bytes(), attempt);
        let length = match self {
            Self::Letters { exactly } => exactly,
            Self::Printable { most } | Self::Word { most } | Self::Alphanumeric { most } => {
                most.min(DERIVED_LENGTH)
            }
        };
        let digit = |_| {
            let digit = ALPHABET[(seed % 62) as usize];
            seed = if seed < 62 { hash(id.as_bytes(), seed ^ attempt) } else { seed / 62 };
            char::from(digit)
        };
        (0..length).map(digit).collect()
    }
}

/// FNV-1a with a final mix. Not collision-resistant against an adversary, and need not be:
/// [`CallIdMap`] resolves collisions.
fn hash(bytes: &[u8], seed: u64) -> u64 {
    let start = 0xcbf2_9ce4_8422_2325_u64 ^ seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let sum = bytes
        .iter()
        .fold(start, |sum, byte| (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3));
    let sum = (sum ^ (sum >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    sum ^ (sum >> 33)
}

/// The replacements for the ids of one conversation. They are assigned in the order of the calls,
/// so that existing ones stay the same as the conversation grows.
pub(super) struct CallIdMap {
    ids: CallIdFormat,
    /// How often each id was assigned to a call.
    times: HashMap<CallId, u64>,
    used: HashSet<String>,
}

impl CallIdMap {
    pub(super) fn new(ids: CallIdFormat) -> Self {
        Self { ids, times: HashMap::new(), used: HashSet::new() }
    }

    /// Returns the replacement for the next call with this id. Servers that number the calls of
    /// each answer from zero reuse their ids.
    pub(super) fn next(&mut self, id: &CallId) -> CallId {
        let times = self.times.entry(CallId::clone(id)).or_default();
        let before = *times;
        *times += 1;
        let first = (before == 0).then(|| self.ids.fit(id));
        if let Some(name) = first.filter(|name| !self.used.contains(&**name)) {
            self.used.insert(name.clone().into_owned());
            return match name {
                Cow::Borrowed(name) if name.len() == id.len() => CallId::clone(id),
                name => name.as_ref().into(),
            };
        }
        // Attempts for a repeated id continue where the last one ended, so that repeated ids cost
        // no more than distinct ones.
        let mut attempt = before.wrapping_mul(0x1_0000).wrapping_add(1);
        loop {
            let name = self.ids.derived(id, attempt);
            if self.used.insert(name.clone()) {
                return name.into();
            }
            attempt = attempt.wrapping_add(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [CallIdFormat; 4] = [
        CallIdFormat::Printable { most: 40 },
        CallIdFormat::Word { most: 64 },
        CallIdFormat::Alphanumeric { most: 64 },
        CallIdFormat::Letters { exactly: 9 },
    ];

    #[test]
    fn valid_ids_stay_and_others_are_replaced() {
        for (ids, id, expected) in [
            (ALL[0], "functions.read:0", Some("functions.read:0")),
            (ALL[0], "call_1|fc_2", Some("call_1")),
            (ALL[0], "a b", None),
            (ALL[1], "toolu_01-x", Some("toolu_01-x")),
            (ALL[1], "functions.read:0", None),
            (ALL[2], "toolu_01", None),
            (ALL[3], "abc123XYZ", Some("abc123XYZ")),
            (ALL[3], "abc123XY", None),
            (ALL[3], "", None),
        ] {
            let fitted = ids.fit(id);
            assert!(ids.takes(&fitted), "{ids:?} {id} {fitted}");
            assert_eq!(fitted, ids.fit(id));
            match expected {
                Some(expected) => assert_eq!(fitted, expected),
                None => assert_ne!(fitted, id),
            }
        }
    }

    #[test]
    fn no_two_calls_get_the_same_id() {
        for ids in ALL {
            let mut names = CallIdMap::new(ids);
            let mut seen = HashSet::new();
            let clash = ids.derived("a|b", 0);
            let given =
                ["call_0", "call_0", "a.b", "a:b", "a_b", "a|b", &clash, "", "", "é", "call_0"];
            for id in given {
                let name = names.next(&CallId::from(id));
                assert!(ids.takes(&name) && seen.insert(name.clone()), "{ids:?} {id} {name}");
            }
        }
    }
}
