//! Lists of objects, read in one pass.

use std::fmt;
use std::ops::Range;

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::{Fields, Object, elements, string};

/// An element of a list, with its fields.
#[derive(Clone, Debug)]
pub(crate) struct JsonElement<'a> {
    pub(crate) raw: &'a str,
    /// Its fields; `None` if it is not an object.
    pub(crate) object: Option<Object<'a>>,
}

impl<'a> JsonElement<'a> {
    pub(crate) fn of(raw: &'a RawValue) -> Self {
        Self { raw: raw.get(), object: Object::of(raw) }
    }

    /// Returns a field as a string; `None` if it is not one.
    pub(crate) fn text(&self, key: &str) -> Option<std::borrow::Cow<'a, str>> {
        self.object.as_ref()?.text(key)
    }

    /// Returns the elements of an array; `None` if the value is not an array.
    pub(crate) fn all(raw: &'a RawValue) -> Option<Vec<Self>> {
        let text = raw.get();
        if !text.starts_with('[') {
            return None;
        }
        let mut found = Vec::new();
        let mut json = serde_json::Deserializer::from_str(text);
        match json.deserialize_seq(Objects { text, found: &mut found }) {
            Ok(()) => Some(found),
            // Not all of them are objects.
            Err(_) => Some(elements(raw)?.into_iter().map(Self::of).collect()),
        }
    }
}

/// An object with a list of objects in it.
#[derive(Debug)]
pub(crate) struct Listing<'a> {
    /// The other fields.
    pub(crate) object: Object<'a>,
    pub(crate) elements: Vec<JsonElement<'a>>,
    /// The range of the list in the text.
    pub(crate) list: Range<usize>,
}

impl<'a> Listing<'a> {
    /// Parses an object with a list of objects under this key. `None` if it is anything else, also
    /// if the list is empty or one of its objects is.
    pub(crate) fn parse(text: &'a str, key: &str) -> Option<Self> {
        let (mut fields, mut elements) = (Vec::new(), Vec::new());
        let mut json = serde_json::Deserializer::from_str(text);
        let visitor = FieldsAndList { text, key, fields: &mut fields, elements: &mut elements };
        json.deserialize_map(visitor).and_then(|()| json.end()).ok()?;
        let first = offset(text, elements.first()?.raw);
        let last = elements.last()?.raw;
        let end = offset(text, last) + last.len();
        // Only blanks are in between.
        let list = text.get(..first)?.rfind('[')?..end + text.get(end..)?.find(']')? + 1;
        Some(Self { object: Object { fields }, elements, list })
    }
}

/// Returns the position of a part of a text.
pub(crate) fn offset(text: &str, part: &str) -> usize {
    (part.as_ptr() as usize).wrapping_sub(text.as_ptr() as usize)
}

/// Returns the text of a parsed object that has fields.
fn extent<'a>(text: &'a str, object: &Object<'a>) -> Option<&'a str> {
    let std::borrow::Cow::Borrowed(key) = &object.fields.first()?.0 else { return None };
    let last = object.fields.last()?.1.get();
    let end = offset(text, last) + last.len();
    // Only blanks and a quote are in between.
    text.get(text.get(..offset(text, key))?.rfind('{')?..end + text.get(end..)?.find('}')? + 1)
}

/// Reads a list; fails if an element is not an object with fields.
struct Objects<'v, 'a> {
    text: &'a str,
    found: &'v mut Vec<JsonElement<'a>>,
}

impl<'a> Visitor<'a> for Objects<'_, 'a> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of objects")
    }

    fn visit_seq<A: SeqAccess<'a>>(self, mut seq: A) -> Result<(), A::Error> {
        while let Some(fields) = seq.next_element_seed(FieldsSeed)? {
            let object = Object { fields };
            let raw = extent(self.text, &object).ok_or_else(|| A::Error::custom("empty"))?;
            self.found.push(JsonElement { raw, object: Some(object) });
        }
        Ok(())
    }
}

impl<'a> DeserializeSeed<'a> for Objects<'_, 'a> {
    type Value = ();

    fn deserialize<D: Deserializer<'a>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_seq(self)
    }
}

struct FieldsSeed;

impl<'a> DeserializeSeed<'a> for FieldsSeed {
    type Value = Vec<(std::borrow::Cow<'a, str>, &'a RawValue)>;

    fn deserialize<D: Deserializer<'a>>(self, json: D) -> Result<Self::Value, D::Error> {
        let mut fields = Vec::new();
        json.deserialize_map(Fields(&mut fields))?;
        Ok(fields)
    }
}

/// Reads an object with a list; fails if it has two of them.
struct FieldsAndList<'v, 'a> {
    text: &'a str,
    key: &'v str,
    fields: &'v mut Vec<(std::borrow::Cow<'a, str>, &'a RawValue)>,
    elements: &'v mut Vec<JsonElement<'a>>,
}

impl<'a> Visitor<'a> for FieldsAndList<'_, 'a> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'a>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(raw) = map.next_key::<&RawValue>()? {
            let key = string(raw).unwrap_or(raw.get().into());
            if key == self.key && self.elements.is_empty() {
                map.next_value_seed(Objects { text: self.text, found: &mut *self.elements })?;
            } else if key == self.key {
                return Err(A::Error::custom("duplicate"));
            } else {
                self.fields.push((key, map.next_value()?));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listing_is_read_as_the_object_and_its_list_are() {
        let text =
            r#" { "a" : 1, "list" : [ {"x":"}]"} , { "y" : [ { } ] , "z":"\"" } ] ,"b":{} } "#;
        let listing = Listing::parse(text, "list").unwrap();
        let whole = Object::parse(text).unwrap();
        let list = whole.get("list").unwrap();
        assert_eq!(&text[listing.list.clone()], list.get());
        let raws: Vec<_> = listing.elements.iter().map(|element| element.raw).collect();
        let known: Vec<_> = elements(list).unwrap().iter().map(|raw| raw.get()).collect();
        assert_eq!(raws, known);
        let all = JsonElement::all(list).unwrap();
        assert_eq!(all.iter().map(|element| element.raw).collect::<Vec<_>>(), known);
        assert_eq!(all[1].text("z").as_deref(), Some("\""));
        assert_eq!(listing.object.iter().map(|(key, _)| key).collect::<Vec<_>>(), ["a", "b"]);
    }

    #[test]
    fn other_lists_are_read_element_by_element() {
        for text in [
            r#"{"list":[]}"#,
            r#"{"list":[{}]}"#,
            r#"{"list":[{"a":1},5]}"#,
            r#"{"list":[{"\u0061":1}]}"#,
            r#"{"list":{}}"#,
            r#"{"list":[{"a":1}],"list":[{"a":1}]}"#,
            r#"{"list":[{"a":1}]} x"#,
            r#"{"list":[{"a":1}]"#,
            r#"{"a":1}"#,
            "[]",
        ] {
            assert!(Listing::parse(text, "list").is_none(), "{text}");
        }
        let list: &RawValue = serde_json::from_str(r#"[{"a":"b"}, {}, "c", [1]]"#).unwrap();
        let raws: Vec<_> =
            JsonElement::all(list).unwrap().iter().map(|element| element.raw).collect();
        assert_eq!(raws, [r#"{"a":"b"}"#, "{}", r#""c""#, "[1]"]);
    }
}
