//! Extracting complete objects from a line that is not a single object.

use memchr::memmem;
use serde_json::value::RawValue;

use ctx_dialect::json::Object;

/// The maximum number of restarts after a broken part. Each attempt may scan the whole line, so
/// this limit keeps a hostile line linear.
const MOST_TRIES: usize = 8;

/// The beginnings of transcript lines in all line-based formats.
const BEGINNINGS: [&str; 4] =
    ["{\"type\":\"", "{\"parentUuid\":", "{\"timestamp\":\"", "{\"id\":\""];

/// The content of a line.
pub(crate) struct Salvage<'a> {
    /// The complete objects, in order.
    pub(crate) objects: Vec<&'a str>,
    /// Whether there is anything between them other than NUL bytes and whitespace.
    pub(crate) debris: bool,
    /// Whether there were NUL bytes.
    pub(crate) nul: bool,
}

/// Extracts every complete object from a line: objects glued together, an object after the torn
/// beginning of another, an object among NUL bytes.
pub(crate) fn salvage(line: &str) -> Salvage<'_> {
    let mut found = Salvage { objects: Vec::new(), debris: false, nul: line.contains('\0') };
    let mut rest = skip(line);
    let mut tries = 0;
    while !rest.is_empty() {
        match first_object(rest) {
            Some(object) if is_entry(object, &rest[object.len()..], tries == 0) => {
                found.objects.push(object);
                rest = skip(&rest[object.len()..]);
            }
            _ => {
                found.debris = true;
                tries += 1;
                let Some(next) = next_beginning(rest).filter(|_| tries < MOST_TRIES) else { break };
                rest = &rest[next..];
            }
        }
    }
    found
}

fn skip(text: &str) -> &str {
    text.trim_start_matches(|c: char| c == '\0' || c.is_ascii_whitespace())
}

fn first_object(text: &str) -> Option<&str> {
    if !text.starts_with('{') {
        return None;
    }
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<&RawValue>();
    values.next()?.ok().map(RawValue::get)
}

/// Whether an object is an entry and not a fragment of a broken entry: true if there is no damage
/// around it, false if there is damage on both sides. With damage on one side, it must have a field
/// that only entries have.
fn is_entry(object: &str, after: &str, first: bool) -> bool {
    let after = skip(after);
    let whole = after.is_empty() || after.starts_with('{');
    if first && whole {
        return true;
    }
    let marks = ["timestamp", "uuid", "parentId", "leafUuid", "payload"];
    (first || whole)
        && Object::parse(object).is_ok_and(|o| {
            marks.iter().any(|key| o.has(key)) || o.text("type").is_some_and(|t| t == "session")
        })
}

/// Returns where the next entry may begin, after the first character.
fn next_beginning(text: &str) -> Option<usize> {
    let from = text.chars().next().map_or(0, char::len_utf8);
    let bytes = text.as_bytes().get(from..)?;
    BEGINNINGS.iter().filter_map(|b| memmem::find(bytes, b.as_bytes())).min().map(|at| from + at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_complete_object_is_extracted() {
        let entry = r#"{"type":"message","id":"b","timestamp":"t"}"#;
        let cases = [
            (format!("{entry}{entry}"), 2, false),
            (format!("\0\0{entry}\0"), 1, false),
            (format!(r#"{{"type":"message","message":{{"a":"b{entry}"#), 1, true),
            (format!("{entry} trailing"), 1, true),
            (r#"{"type":"message","content":[{"type":"text","text":"x"},{"#.to_owned(), 0, true),
            ("garbage".to_owned(), 0, true),
        ];
        for (line, objects, debris) in cases {
            let found = salvage(&line);
            assert_eq!((found.objects.len(), found.debris), (objects, debris), "{line}");
        }
    }

    #[test]
    fn salvaging_a_hostile_line_ends() {
        let line = r#"{"type":"a","x":"#.repeat(200_000);
        assert!(salvage(&line).objects.is_empty());
        let line = "{".repeat(1_000_000);
        assert!(salvage(&line).objects.is_empty());
    }
}
