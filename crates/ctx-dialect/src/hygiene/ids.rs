//! Ids of tool calls in the alphabets that providers take.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use ctx_core::CallId;

/// Which ids a provider takes. The empty id fits nobody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ids {
    /// ASCII that can be seen, but for the bar, by which some agents put two ids into one.
    Printable {
        /// The longest, in characters.
        most: usize,
    },
    /// Letters, digits, `_` and `-`.
    Word {
        /// The longest, in characters.
        most: usize,
    },
    /// Letters and digits.
    Alphanumeric {
        /// The longest, in characters.
        most: usize,
    },
    /// Letters and digits, just so many.
    Letters {
        /// The length, in characters.
        exactly: usize,
    },
}

const ALPHABET: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// Characters of a name that is made from an id: 62^11 is just over 2^64.
const MADE: usize = 11;

impl Ids {
    /// Whether an id is taken as it is.
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

    /// An id as it is if it is taken, else one that is made from it: always the same.
    #[must_use]
    pub fn fit(self, id: &str) -> Cow<'_, str> {
        if self.takes(id) {
            return Cow::Borrowed(id);
        }
        // `call_1|fc_9`: what stands before the bar is the id that the provider gave.
        match id.split_once('|') {
            Some((first, _)) if self.takes(first) => Cow::Borrowed(first),
            _ => Cow::Owned(self.made(id, 0)),
        }
    }

    fn has(self, c: char) -> bool {
        match self {
            Self::Printable { .. } => c.is_ascii_graphic() && c != '|',
            Self::Word { .. } => c.is_ascii_alphanumeric() || c == '_' || c == '-',
            Self::Alphanumeric { .. } | Self::Letters { .. } => c.is_ascii_alphanumeric(),
        }
    }

    /// An id made from another; each `attempt` gives another one.
    fn made(self, id: &str, attempt: u64) -> String {
        let mut seed = hash(id.as_bytes(), attempt);
        let length = match self {
            Self::Letters { exactly } => exactly,
            Self::Printable { most } | Self::Word { most } | Self::Alphanumeric { most } => {
                most.min(MADE)
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

/// FNV-1a, mixed at the end. It is nothing to rely on against an adversary, and need not be: ids
/// that meet are parted by [`Names`].
fn hash(bytes: &[u8], seed: u64) -> u64 {
    let start = 0xcbf2_9ce4_8422_2325_u64 ^ seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let sum = bytes
        .iter()
        .fold(start, |sum, byte| (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3));
    let sum = (sum ^ (sum >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    sum ^ (sum >> 33)
}

/// The ids of one conversation, each under what the provider is told in its place. They are given
/// in the order in which calls are made, so that a conversation that goes on keeps what it has.
pub(super) struct Names {
    ids: Ids,
    /// How often each id was given to a call.
    times: HashMap<CallId, u64>,
    used: HashSet<String>,
}

impl Names {
    pub(super) fn new(ids: Ids) -> Self {
        Self { ids, times: HashMap::new(), used: HashSet::new() }
    }

    /// The name of the next call that has this id. Servers that number the calls of each answer
    /// from zero use theirs many times.
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
        // Attempts of one id begin where its last one ended, so that many calls of one id cost no
        // more than as many ids.
        let mut attempt = before.wrapping_mul(0x1_0000).wrapping_add(1);
        loop {
            let name = self.ids.made(id, attempt);
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

    const ALL: [Ids; 4] = [
        Ids::Printable { most: 40 },
        Ids::Word { most: 64 },
        Ids::Alphanumeric { most: 64 },
        Ids::Letters { exactly: 9 },
    ];

    #[test]
    fn ids_that_fit_stay_and_others_are_made() {
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
    fn no_two_calls_get_one_name_whatever_ids_they_have() {
        for ids in ALL {
            let mut names = Names::new(ids);
            let mut seen = HashSet::new();
            let clash = ids.made("a|b", 0);
            let given =
                ["call_0", "call_0", "a.b", "a:b", "a_b", "a|b", &clash, "", "", "é", "call_0"];
            for id in given {
                let name = names.next(&CallId::from(id));
                assert!(ids.takes(&name) && seen.insert(name.clone()), "{ids:?} {id} {name}");
            }
        }
    }
}
