//! Dates and times.

use crate::WordList;

static MONTHS: WordList = WordList::new("months");

/// Returns the length of a date at the beginning of `text`: `March 15, 2026`, `Mar. 3rd`, `June
/// 2026`, `15 March`, `2026-03-15`, `3月15日`.
pub fn day_len(text: &str) -> Option<usize> {
    if text.starts_with(|c: char| c.is_ascii_digit()) {
        return chinese(text).or_else(|| day_first(text));
    }
    let month = month_len(text)?;
    let rest = text.get(month..)?;
    let gap = rest.strip_prefix('.').map_or(0, |_| 1);
    let rest = rest.get(gap..)?.strip_prefix([' ', '\n'])?;
    let start = month + gap + 1;
    if let Some(year) = year_len(rest) {
        return Some(start + year);
    }
    let day = ordinal_len(rest)?;
    let after = rest.get(day..)?;
    let lead =
        if after.starts_with(", ") { 2 } else { usize::from(after.starts_with([' ', '\n'])) };
    let year = after.get(lead..).and_then(year_len).filter(|_| lead > 0);
    Some(start + day + year.map_or(0, |year| lead + year))
}

/// `14:30`, `9:05`.
pub(super) fn is_hour(word: &str) -> bool {
    word.split_once(':').is_some_and(|(hour, minute)| {
        let digits = |part: &str| part.bytes().all(|b| b.is_ascii_digit());
        digits(hour)
            && digits(minute)
            && minute.len() == 2
            && hour.parse::<u8>().is_ok_and(|hour| hour < 25)
            && minute < "60"
    })
}

/// `15 March 2026`, `3rd of May`.
fn day_first(text: &str) -> Option<usize> {
    let day = ordinal_len(text)?;
    let rest = text.get(day..)?.strip_prefix([' ', '\n'])?;
    let of = if rest.starts_with("of ") { 3 } else { 0 };
    let month = month_len(rest.get(of..)?)?;
    let end = day + 1 + of + month;
    let after = text.get(end..)?;
    let lead =
        if after.starts_with(", ") { 2 } else { usize::from(after.starts_with([' ', '\n'])) };
    let year = after.get(lead..).and_then(year_len).filter(|_| lead > 0);
    Some(end + year.map_or(0, |year| lead + year))
}

/// The full or three-letter name of a month, capitalised.
fn month_len(text: &str) -> Option<usize> {
    let letters = text.bytes().take(10).take_while(u8::is_ascii_alphabetic).count();
    let word = text.get(..letters)?;
    let lower = word.to_ascii_lowercase();
    let known = MONTHS.iter().any(|month| *month == lower)
        || matches!(lower.as_str(), "sept")
        || (letters == 3 && MONTHS.iter().any(|month| month.starts_with(&lower)));
    (known && word.starts_with(|c: char| c.is_ascii_uppercase())).then_some(letters)
}

/// `15`, `3rd`.
fn ordinal_len(text: &str) -> Option<usize> {
    let digits = text.bytes().take(3).take_while(u8::is_ascii_digit).count();
    let day: u8 = text.get(..digits)?.parse().ok()?;
    let rest = text.get(digits..)?;
    let suffix = ["st", "nd", "rd", "th"].iter().any(|end| rest.starts_with(end));
    let len = digits + if suffix { 2 } else { 0 };
    let ends = text
        .get(len..)?
        .chars()
        .next()
        .is_none_or(|c| !c.is_alphanumeric() && c != '%' && c != ':');
    ((1..=31).contains(&day) && ends).then_some(len)
}

fn year_len(text: &str) -> Option<usize> {
    let digits = text.bytes().take(5).take_while(u8::is_ascii_digit).count();
    let ends = text.get(digits..)?.chars().next().is_none_or(|c| !c.is_alphanumeric());
    (digits == 4 && ends && text.starts_with(['1', '2'])).then_some(4)
}

/// `2026年3月15日`, `3月15号`, `2026年3月`.
fn chinese(text: &str) -> Option<usize> {
    let part = |at: usize, most: usize, signs: &[char]| {
        let rest = text.get(at..)?;
        let digits = rest.bytes().take(most + 1).take_while(u8::is_ascii_digit).count();
        let sign = rest.get(digits..)?.chars().next().filter(|c| signs.contains(c))?;
        (digits > 0 && digits <= most).then_some(at + digits + sign.len_utf8())
    };
    let year = part(0, 4, &['年']);
    let month = part(year.unwrap_or(0), 2, &['月'])?;
    let day = part(month, 2, &['日', '号']);
    day.or(year.map(|_| month))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_read_in_the_ways_people_write_them() {
        for (text, day) in [
            ("March 15, 2026 is", Some("March 15, 2026")),
            ("Mar. 3rd, then", Some("Mar. 3rd")),
            ("June 2026", Some("June 2026")),
            ("June 14 for", Some("June 14")),
            ("15 March 2026", Some("15 March 2026")),
            ("3rd of May.", Some("3rd of May")),
            ("3月15日前", Some("3月15日")),
            ("2026年3月15号", Some("2026年3月15号")),
            ("2026年3月", Some("2026年3月")),
            ("3月", None),
            ("may 5 people", None),
            ("May be 5", None),
            ("March on", None),
            ("15 people", None),
        ] {
            assert_eq!(day_len(text).map(|len| &text[..len]), day, "{text}");
        }
        assert!(is_hour("14:30") && is_hour("9:05") && !is_hour("25:00") && !is_hour("1:2:3"));
    }
}
