//! Reads the first fields of an object without the rest.
//!
//! The role is at the beginning of nearly every message, and the rest may be megabytes.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserializer, Error as _, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::json::string;

/// Returns the string values of these fields. Reading stops when all are found; of equal keys, the
/// first one counts.
pub(super) fn peek<'a, const N: usize>(
    json: &'a str,
    keys: [&str; N],
) -> [Option<Cow<'a, str>>; N] {
    let mut found = [const { None }; N];
    let mut json = serde_json::Deserializer::from_str(json);
    // An error ends reading early; other values have no fields.
    let _ = json.deserialize_map(Peek { keys, found: &mut found });
    found.map(|raw| raw.and_then(string))
}

struct Peek<'k, 'f, 'a, const N: usize> {
    keys: [&'k str; N],
    found: &'f mut [Option<&'a RawValue>; N],
}

impl<'a, const N: usize> Visitor<'a> for Peek<'_, '_, 'a, N> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'a>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<&RawValue>()? {
            let key = string(key);
            let at = self.keys.iter().position(|known| key.as_deref() == Some(*known));
            match at.and_then(|at| self.found.get_mut(at)).filter(|found| found.is_none()) {
                Some(found) => *found = Some(map.next_value()?),
                None => drop(map.next_value::<IgnoredAny>()?),
            }
            if self.found.iter().all(Option::is_some) {
                return Err(A::Error::custom("all fields found"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reading_ends_when_all_fields_are_found() {
        let cut = r#"{"type":"message","x":[{}],"role":"us\u0065r","content":[{"#;
        assert_eq!(peek(cut, ["role", "type"]), [Some("user".into()), Some("message".into())]);
        assert_eq!(peek(r#"{"role":5}"#, ["role"]), [None]);
        for none in ["5", "", "[]", "{", r#"{"a":1}"#] {
            assert_eq!(peek(none, ["role", "type"]), [None, None], "{none}");
        }
    }
}
