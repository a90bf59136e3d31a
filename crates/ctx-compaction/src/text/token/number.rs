//! Numbers and their units.

use super::is_cjk;

/// A number as it stands, with what can be compared of it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Number {
    /// How many bytes it takes, its unit included.
    pub(super) len: usize,
    /// The value without separators and trailing zeros; of a range, both ends.
    pub(crate) value: String,
    /// Its unit under one name; empty where there is none.
    pub(crate) unit: &'static str,
    /// Whether the unit only says what is counted.
    pub(super) is_count: bool,
}

/// Reads a number at the beginning of `text`: `1,500 ms`, `$5.20`, `10-20%`, `3 小时`.
pub(crate) fn number(text: &str) -> Option<Number> {
    let (currency, lead) = currency(text);
    let mut at = lead;
    let mut value = String::new();
    at += digits(text.get(at..)?, &mut value)?;
    if let Some(width) = range_sign(text.get(at..)?) {
        let mut second = String::new();
        if let Some(more) = text.get(at + width..).and_then(|rest| digits(rest, &mut second)) {
            value = format!("{value}-{second}");
            at += width + more;
        }
    }
    let rest = text.get(at..)?;
    if let Some(name) = currency {
        let len = at + magnitude(rest, &mut value);
        return Some(Number { len, value, unit: name, is_count: false });
    }
    if let Some((len, unit, is_count)) = unit(rest) {
        return Some(Number { len: at + len, value, unit, is_count });
    }
    let scaled = magnitude(rest, &mut value);
    if scaled > 0 {
        let after = text.get(at + scaled..)?;
        let (len, unit, _) = unit(after).unwrap_or((0, "", false));
        let unit = if unit.is_empty() { "k" } else { unit };
        return Some(Number { len: at + scaled + len, value, unit, is_count: false });
    }
    // `12abc` is no number.
    let open = rest.chars().next().is_some_and(goes_on);
    (!open).then_some(Number { len: at, value, unit: "", is_count: false })
}

/// Whether a word goes on with this character: what it follows is no number then.
fn goes_on(c: char) -> bool {
    (c.is_alphanumeric() && !is_cjk(c)) || c == '_'
}

/// Digits with separators, written to `value` without them.
fn digits(text: &str, value: &mut String) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(&b) = bytes.get(at) {
        if b.is_ascii_digit() {
            value.push(b as char);
        } else if !(b == b',' && at > 0 && is_group(bytes.get(at + 1..).unwrap_or_default())) {
            break;
        }
        at += 1;
        if at > 40 {
            return None;
        }
    }
    if at == 0 {
        return None;
    }
    let fraction = bytes.get(at + 1..).unwrap_or_default();
    let places = fraction.iter().take(20).take_while(|b| b.is_ascii_digit()).count();
    if bytes.get(at) == Some(&b'.') && places > 0 {
        value.push('.');
        value.extend(fraction.iter().take(places).map(|&b| b as char));
        at += 1 + places;
        let kept = value.trim_end_matches('0').trim_end_matches('.').len();
        value.truncate(kept);
    }
    Some(at)
}

/// Three digits and no fourth: what follows a thousands separator.
fn is_group(bytes: &[u8]) -> bool {
    bytes.iter().take(4).take_while(|b| b.is_ascii_digit()).count() == 3
}

fn range_sign(text: &str) -> Option<usize> {
    let sign = ["-", "–", "~", "～"].into_iter().find(|sign| text.starts_with(sign))?;
    let next = text.get(sign.len()..)?.bytes().next()?;
    next.is_ascii_digit().then_some(sign.len())
}

fn currency(text: &str) -> (Option<&'static str>, usize) {
    let signs = [("$", "usd"), ("€", "eur"), ("£", "gbp"), ("¥", "cny"), ("￥", "cny")];
    let found = signs.into_iter().find(|(sign, _)| text.starts_with(sign));
    found.map_or((None, 0), |(sign, name)| (Some(name), sign.len()))
}

/// `k`, `M`, `万`: multiplies the value where it is a whole number.
fn magnitude(rest: &str, value: &mut String) -> usize {
    let Some(c) = rest.chars().next() else { return 0 };
    let zeros = match c {
        'k' | 'K' => 3,
        'm' | 'M' => 6,
        'b' | 'B' | '亿' => 9,
        '万' => 4,
        _ => return 0,
    };
    let len = c.len_utf8();
    let after = rest.get(len..).and_then(|rest| rest.chars().next());
    if !is_cjk(c) && after.is_some_and(goes_on) {
        return 0;
    }
    if value.contains('-') {
        value.push(c);
        return len;
    }
    let zeros = if c == '亿' { 8 } else { zeros };
    let (whole, fraction) = value.split_once('.').unwrap_or((value.as_str(), ""));
    if fraction.len() <= zeros {
        let pad = "0".repeat(zeros - fraction.len());
        let scaled = format!("{whole}{fraction}{pad}");
        let scaled = scaled.trim_start_matches('0');
        *value = if scaled.is_empty() { "0".to_owned() } else { scaled.to_owned() };
    }
    len
}

/// The unit at the beginning of `rest`, perhaps after a blank or a hyphen.
fn unit(rest: &str) -> Option<(usize, &'static str, bool)> {
    let gap = rest.chars().take(2).take_while(|c| matches!(c, ' ' | '\n' | '\u{a0}')).count();
    let lead: usize = rest.chars().take(gap).map(char::len_utf8).sum();
    let lead = if gap == 0 && rest.starts_with('-') { 1 } else { lead };
    let text = rest.get(lead..)?;
    if text.starts_with('%') || text.starts_with('％') {
        return Some((lead + text.chars().next()?.len_utf8(), "%", false));
    }
    if let Some((sign, name, is_count)) = CHINESE.iter().find(|(sign, ..)| text.starts_with(sign)) {
        return Some((lead + sign.len(), name, *is_count));
    }
    let letters =
        text.bytes().take(16).take_while(|b| b.is_ascii_alphabetic() || *b == b'/').count();
    let micro = ["µs", "μs"].into_iter().find(|sign| text.starts_with(sign));
    if let Some(sign) = micro {
        return Some((lead + sign.len(), "us", false));
    }
    let word = text.get(..letters)?.trim_end_matches('/');
    let next = text.get(word.len()..)?.chars().next();
    if word.is_empty() || next.is_some_and(|c| c == '_' || c.is_ascii_digit()) {
        return None;
    }
    let (name, is_count) = english(word).or_else(|| {
        // `200/s` is a rate, `3 ms/op` is milliseconds.
        let (unit, _) = word.split_once('/')?;
        english(unit)
    })?;
    // A single letter after a blank is rather a word than a unit: `3 m`, `a 5 s`.
    if lead > 0 && word.len() == 1 && !matches!(word, "s" | "B") {
        return None;
    }
    Some((lead + word.len(), name, is_count))
}

const CHINESE: &[(&str, &str, bool)] = &[
    ("毫秒", "ms", false),
    ("微秒", "us", false),
    ("秒", "s", false),
    ("分钟", "min", false),
    ("小时", "h", false),
    ("个小时", "h", false),
    ("天", "d", false),
    ("周", "w", false),
    ("个月", "month", false),
    ("月", "month", false),
    ("年", "y", false),
    ("元", "cny", false),
    ("块钱", "cny", false),
    ("美元", "usd", false),
    ("字节", "b", false),
    ("兆", "mb", false),
    ("公里", "km", false),
    ("米", "m", false),
    ("厘米", "cm", false),
    ("公斤", "kg", false),
    ("度", "deg", false),
    ("倍", "x", false),
    ("核", "core", false),
    ("人", "user", true),
    ("次", "time", true),
    ("行", "line", true),
    ("条", "row", true),
    ("个", "piece", true),
    ("字", "char", true),
    ("页", "page", true),
    ("并发", "concurrent", true),
];

/// One name for each unit; whether it only counts.
fn english(word: &str) -> Option<(&'static str, bool)> {
    // Megabits and megabytes differ in case alone, seconds and siemens do not matter.
    let unit = match word {
        "ms" | "msec" | "msecs" | "millis" | "millisecond" | "milliseconds" => "ms",
        "us" | "microsecond" | "microseconds" => "us",
        "am" | "AM" => "am",
        "pm" | "PM" => "pm",
        "ns" | "nanosecond" | "nanoseconds" => "ns",
        "s" | "S" | "sec" | "secs" | "second" | "seconds" => "s",
        "min" | "mins" | "minute" | "minutes" => "min",
        "h" | "hr" | "hrs" | "hour" | "hours" => "h",
        "d" | "day" | "days" => "d",
        "w" | "week" | "weeks" => "w",
        "month" | "months" => "month",
        "y" | "yr" | "year" | "years" => "y",
        "B" | "byte" | "bytes" => "b",
        "bit" | "bits" => "bit",
        "kb" | "KB" | "kB" | "Kb" => "kb",
        "mb" | "MB" | "Mb" => "mb",
        "gb" | "GB" | "Gb" | "G" => "gb",
        "tb" | "TB" | "T" => "tb",
        "PB" => "pb",
        "KiB" | "Ki" => "kib",
        "MiB" | "Mi" => "mib",
        "GiB" | "Gi" => "gib",
        "TiB" | "Ti" => "tib",
        "percent" | "pct" => "%",
        "pp" => "pp",
        "Hz" | "hz" => "hz",
        "kHz" => "khz",
        "MHz" => "mhz",
        "GHz" => "ghz",
        "fps" | "FPS" => "fps",
        "rps" | "RPS" | "req/s" | "requests/s" => "rps",
        "qps" | "QPS" => "qps",
        "tps" | "TPS" => "tps",
        "rpm" | "RPM" => "rpm",
        "Mbps" | "mbps" | "Mbit/s" => "mbps",
        "Gbps" | "gbps" => "gbps",
        "MB/s" => "mb/s",
        "GB/s" => "gb/s",
        "px" | "pixels" => "px",
        "em" => "em",
        "rem" => "rem",
        "vh" => "vh",
        "vw" => "vw",
        "dpi" => "dpi",
        "km" => "km",
        "m" | "meters" | "metres" => "m",
        "cm" => "cm",
        "mm" => "mm",
        "kg" => "kg",
        "g" | "grams" => "g",
        "mg" => "mg",
        "lb" | "lbs" => "lb",
        "kW" => "kw",
        "kWh" => "kwh",
        "mAh" => "mah",
        "V" => "v",
        "W" => "watt",
        "USD" | "usd" | "dollars" | "cents" => "usd",
        "EUR" | "euros" => "eur",
        "GBP" => "gbp",
        "RMB" | "CNY" | "yuan" => "cny",
        "x" | "X" => "x",
        "tokens" | "token" => "token",
        "cores" | "core" | "vCPU" | "vCPUs" | "CPUs" | "GPUs" => "core",
        "degrees" => "deg",
        _ => return counted(word),
    };
    Some((unit, false))
}

fn counted(word: &str) -> Option<(&'static str, bool)> {
    let unit = match word {
        "rows" | "records" => "row",
        "users" | "people" | "customers" => "user",
        "requests" => "request",
        "connections" => "connection",
        "workers" => "worker",
        "threads" => "thread",
        "retries" | "attempts" | "times" => "time",
        "chars" | "characters" => "char",
        "lines" => "line",
        "pages" => "page",
        "messages" => "message",
        "events" => "event",
        "items" => "item",
        "replicas" => "replica",
        "shards" => "shard",
        "partitions" => "partition",
        "epochs" => "epoch",
        "columns" => "column",
        "words" => "word",
        _ => return None,
    };
    Some((unit, true))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_and_units_are_read_however_they_are_written() {
        for (text, value, unit, len) in [
            ("500ms", "500", "ms", 5),
            ("500 ms,", "500", "ms", 6),
            ("1,500 ms", "1500", "ms", 8),
            ("30-second timeout", "30", "s", 9),
            ("2.50 GB", "2.5", "gb", 7),
            ("$5.20 a month", "5.2", "usd", 5),
            ("10-20%", "10-20", "%", 6),
            ("200k tokens", "200000", "token", 11),
            ("1.5M", "1500000", "k", 4),
            ("3 小时", "3", "h", 8),
            ("3万条", "30000", "row", 7),
            ("42", "42", "", 2),
            ("5 minutes", "5", "min", 9),
        ] {
            let number = number(text).unwrap_or_else(|| panic!("{text}"));
            assert_eq!(
                (number.value.as_str(), number.unit, number.len),
                (value, unit, len),
                "{text}"
            );
        }
        for text in ["12abc", "abc", "", "$", "1_000"] {
            assert_eq!(number(text), None, "{text}");
        }
    }
}
