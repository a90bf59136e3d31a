//! Reading damaged documents message by message.

mod boundaries;

use ctx_core::text::Slice;
use ctx_dialect::json::{Object, ObjectWriter, array, relaxed, skip_trivia};
use serde_json::value::RawValue;

use boundaries::{begins_message, includes_messages, list_at};

/// The fields that contain messages.
pub(super) const LISTS: [&str; 2] = ["messages", "compactedHistory"];

/// How often each byte may be examined. Each attempt to continue after damage may scan the whole
/// text; this limit keeps a hostile document linear.
const LOOKS: usize = 8;

/// The intact parts of a damaged document.
#[derive(Debug)]
pub(super) struct RecoveredDocument {
    /// Its complete parts as strict JSON.
    pub(super) json: String,
    /// Whether some of them were not strict JSON.
    pub(super) was_json5: bool,
    /// The ranges that cannot be read.
    pub(super) lost: Vec<(usize, usize)>,
}

/// Extracts every complete message, and every other complete field, from a damaged document.
pub(super) fn recover_document(text: &str) -> RecoveredDocument {
    let lists = LISTS.iter().flat_map(|key| {
        memchr::memmem::find_iter(text.as_bytes(), key).filter_map(|at| list_at(text, at, key))
    });
    let mut lists: Vec<_> = lists.collect();
    lists.sort_unstable();
    let mut scan = Scan {
        text,
        at: skip_trivia(text, 0).unwrap_or(0),
        looks: text.len().saturating_mul(LOOKS),
        lists,
        was_json5: false,
        found: 0,
        lost: Vec::new(),
    };
    let mut json = match scan.byte() {
        Some(b'[') => {
            scan.at += 1;
            array(scan.elements())
        }
        Some(b'{') => {
            scan.at += 1;
            scan.body()
        }
        _ => scan.body(),
    };
    if scan.found == 0 {
        // Not even the key of the list is intact.
        scan.lost.clear();
        scan.looks = text.len().saturating_mul(LOOKS);
        if let Some(at) = scan.next_message(0, text.len()) {
            scan.add_unreadable(0, at);
            json = array(scan.elements());
        } else {
            scan.at = 0;
        }
    }
    scan.add_unreadable(scan.at, text.len());
    RecoveredDocument { json, was_json5: scan.was_json5, lost: scan.lost }
}

struct Scan<'t> {
    text: &'t str,
    at: usize,
    /// The number of bytes that may still be examined.
    looks: usize,
    /// The positions where lists of messages seem to begin, with their keys.
    lists: Vec<usize>,
    was_json5: bool,
    /// The number of elements read.
    found: usize,
    lost: Vec<(usize, usize)>,
}

impl<'t> Scan<'t> {
    fn byte(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn slice(&self, from: usize, to: usize) -> &'t str {
        self.text.slice(from..to)
    }

    fn add_unreadable(&mut self, from: usize, to: usize) {
        if !self.slice(from, to).trim().is_empty() {
            self.lost.push((from, to));
        }
        self.at = to;
    }

    /// Skips whitespace, comments and commas.
    fn skip(&mut self) {
        loop {
            match skip_trivia(self.text, self.at) {
                Some(at) => self.at = at,
                None => return self.add_unreadable(self.at, self.text.len()),
            }
            match self.byte() {
                Some(b',') => self.at += 1,
                _ => return,
            }
        }
    }

    /// Reads the fields of the document.
    fn body(&mut self) -> String {
        let mut fields = ObjectWriter::new();
        let mut lists: [Option<Vec<String>>; LISTS.len()] = Default::default();
        loop {
            self.skip();
            let start = self.at;
            match self.byte() {
                None => break,
                Some(b'}') => {
                    self.at += 1;
                    break;
                }
                Some(_) => {}
            }
            if let Some(key) = self.key() {
                let list = LISTS.iter().position(|list| *list == key);
                if let (Some(list), Some(b'[')) = (list, self.byte()) {
                    self.at += 1;
                    let found = self.elements();
                    lists[list].get_or_insert_default().extend(found);
                    continue;
                }
                if let Some(end) = self.end_of(self.at) {
                    match self.strict(self.slice(self.at, end)) {
                        Some(json) => {
                            fields = fields.raw(&key, json);
                            self.at = end;
                        }
                        None => self.add_unreadable(start, end),
                    }
                    continue;
                }
            }
            let next = self.next_list(start + 1).unwrap_or(self.text.len());
            self.add_unreadable(start, next);
        }
        for (key, items) in LISTS.iter().zip(lists) {
            if let Some(items) = items {
                fields = fields.raw(key, array(items));
            }
        }
        fields.end()
    }

    /// Reads a key and the colon after it.
    fn key(&mut self) -> Option<String> {
        let rest = self.slice(self.at, self.text.len());
        let (key, len) = match rest.chars().next()? {
            quote @ ('"' | '\'') => {
                let len = rest.get(1..)?.find([quote, '\n'])?;
                (rest.get(1..=len)?, len + 2)
            }
            _ => {
                let len = rest.find(|c: char| !c.is_alphanumeric() && c != '_' && c != '$')?;
                (rest.get(..len)?, len)
            }
        };
        self.at = skip_trivia(self.text, self.at + len)?;
        if self.byte()? != b':' {
            return None;
        }
        self.at = skip_trivia(self.text, self.at + 1)?;
        Some(key.to_owned())
    }

    /// Reads the complete elements of the list that was just opened.
    fn elements(&mut self) -> Vec<String> {
        let mut found = Vec::new();
        loop {
            self.skip();
            let start = self.at;
            match self.byte() {
                None => return found,
                Some(b']') => {
                    self.at += 1;
                    return found;
                }
                Some(_) => {}
            }
            if let Some(end) = self.end_of(start) {
                let element = self.slice(start, end);
                if let Some(json) = self.strict(element) {
                    found.push(json);
                    self.found += 1;
                    self.at = end;
                    continue;
                }
                if !includes_messages(element) {
                    self.add_unreadable(start, end);
                    continue;
                }
            }
            // If the brackets are wrong, the next message is found by its typical beginning.
            let list = self.next_list(start + 1).unwrap_or(self.text.len());
            let next = self.next_message(start + 1, list);
            self.add_unreadable(start, next.unwrap_or(list));
            if next.is_none() {
                return found;
            }
        }
    }

    fn next_list(&self, from: usize) -> Option<usize> {
        self.lists.get(self.lists.partition_point(|&at| at < from)).copied()
    }

    /// Returns the beginning of the next complete message. `from` may be inside a character.
    fn next_message(&mut self, from: usize, to: usize) -> Option<usize> {
        let bytes = self.text.as_bytes().get(from..to)?;
        for at in memchr::memchr_iter(b'{', bytes).map(|at| from + at) {
            if !begins_message(self.slice(at, to)) {
                continue;
            }
            let json = self.end_of(at).and_then(|end| self.strict(self.slice(at, end)));
            if json.is_some_and(|json| Object::parse(&json).is_ok_and(|o| o.has("role"))) {
                return Some(at);
            }
        }
        None
    }

    /// Counts examined bytes. Returns `None` when the limit is exceeded.
    fn look_at(&mut self, bytes: usize) -> Option<()> {
        let left = self.looks.checked_sub(bytes);
        self.looks = left.unwrap_or(0);
        left.map(drop)
    }

    /// Returns the value as strict JSON, if it is complete.
    fn strict(&mut self, text: &str) -> Option<String> {
        self.look_at(text.len())?;
        if serde_json::from_str::<&RawValue>(text).is_ok() {
            return Some(text.to_owned());
        }
        let json = relaxed(text)?;
        self.was_json5 = true;
        Some(json)
    }

    /// Returns the end of the value at `from`, if its brackets and strings are closed.
    fn end_of(&mut self, from: usize) -> Option<usize> {
        self.look_at(1)?;
        let bytes = self.text.as_bytes();
        let mut open: Vec<u8> = Vec::new();
        let mut at = from;
        let end = loop {
            let Some(&byte) = bytes.get(at) else { break None };
            match byte {
                b'"' | b'\'' => match string_end(bytes, at) {
                    Some(end) => at = end,
                    None => break None,
                },
                b'/' if matches!(bytes.get(at + 1), Some(b'/' | b'*')) => {
                    match skip_trivia(self.text, at) {
                        Some(end) => at = end,
                        None => break None,
                    }
                }
                b'[' | b'{' => {
                    open.push(byte);
                    at += 1;
                }
                b']' | b'}' => {
                    let opener = if byte == b']' { b'[' } else { b'{' };
                    match open.pop() {
                        Some(found) if found == opener => at += 1,
                        Some(_) => break None,
                        // The list continues without another value.
                        None => break Some(at),
                    }
                }
                b',' | b'\n' if open.is_empty() => break Some(at),
                _ => at += 1,
            }
            let closed = matches!(byte, b']' | b'}' | b'"' | b'\'');
            if closed && open.is_empty() {
                break Some(at);
            }
        };
        self.look_at(at - from)?;
        end.filter(|&end| end > from)
    }
}

/// Returns the end of the string that begins at `at`; `None` if its line or the text ends first.
fn string_end(bytes: &[u8], at: usize) -> Option<usize> {
    let quote = *bytes.get(at)?;
    let mut at = at + 1;
    loop {
        let found = at + memchr::memchr3(quote, b'\\', b'\n', bytes.get(at..)?)?;
        match bytes.get(found) {
            Some(b'\\') => at = found + 2,
            Some(b'\n') => return None,
            _ => return Some(found + 1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, json: &str, lost: &[&str]) {
        let recovered = recover_document(text);
        assert_eq!(recovered.json, json);
        let found: Vec<_> =
            recovered.lost.iter().map(|&(from, to)| text[from..to].trim()).collect();
        assert_eq!(found, lost);
    }

    #[test]
    fn complete_parts_are_read_and_other_parts_are_listed() {
        let (a, b, c) = (
            r#"{"role":"user","content":"a"}"#,
            r#"{"role":"user","content":"b"}"#,
            r#"{"role":"user","content":"c"}"#,
        );
        let broken = r#"{"role":"x","content":"b" BROKEN}"#;
        check(&format!("[{a},{broken},{c}]"), &format!("[{a},{c}]"), &[broken]);
        let body = format!(r#"{{"model":"m","messages":[{a},{broken}, {c}],"x":1}}"#);
        check(&body, &format!(r#"{{"model":"m","x":1,"messages":[{a},{c}]}}"#), &[broken]);
        // A missing quote, a missing bracket, a superfluous bracket.
        let quote = r#"{"role":"user","content":"b}"#;
        check(&format!("[{a},{quote},{c}]"), &format!("[{a},{c}]"), &[&format!("{quote},")]);
        let open = r#"{"role":"user","content":[{"type":"text"}"#;
        check(&format!("[{a},{open},{c}]"), &format!("[{a},{c}]"), &[&format!("{open},")]);
        check(&format!("[{a},{b}}},{c}]"), &format!("[{a},{b},{c}]"), &["},"]);
        // The end is missing.
        check(&format!("[{a},{}", &b[..12]), &format!("[{a}]"), &[&b[..12]]);
        // The list is missing, or even the document's beginning.
        check(&format!(r#"{{"mess{a},{b}]}}"#), &format!("[{a},{b}]"), &[r#"{"mess"#, "}"]);
        check(&format!("!!{{messages:[{a}]}}"), &format!(r#"{{"messages":[{a}]}}"#), &["!!{"]);
        // The second list is found after a broken first one.
        let lists = format!(r#"{{"messages":[{a},{quote}],"compactedHistory":[{c}]}}"#);
        let expected = format!(r#"{{"messages":[{a}],"compactedHistory":[{c}]}}"#);
        check(&lists, &expected, &[&format!("{quote}],")]);
    }

    #[test]
    fn json5_is_read_too() {
        let text =
            "{messages:[{role:'user',content:'it\\'s }'}, // {role:\n {role:'x' y},{role:'us";
        check(
            text,
            r#"{"messages":[{"role":"user","content":"it's }"}]}"#,
            &["{role:'x' y}", "{role:'us"],
        );
    }

    #[test]
    fn recovering_hostile_texts_ends() {
        let begun = r#"{"role":"#;
        for text in
            [format!("[{}", begun.repeat(300_000)), "[{role:'".repeat(300_000), "[".repeat(1 << 20)]
        {
            recover_document(&text);
        }
    }
}
