//! Amounts with units, such as `1h30m` and `12.5 mb`.

use std::fmt;

/// Units of time and their milliseconds, the longest first; `ms` comes before `m`.
pub const TIME_UNITS: [(&str, u64); 6] = [
    ("w", 7 * 86_400_000),
    ("d", 86_400_000),
    ("h", 3_600_000),
    ("ms", 1),
    ("m", 60_000),
    ("s", 1_000),
];

/// Units of time without weeks.
pub const SHORT_TIME_UNITS: &[(&str, u64)] = TIME_UNITS.split_at(1).1;

/// Parses a text such as `12.5 mb` with these units, in any case. Returns the sum of the parts in
/// the smallest unit. `plain` is the unit of a bare number.
#[must_use]
pub fn parse(text: &str, units: &[(&str, u64)], plain: u64) -> Option<u64> {
    let text = text.trim().to_ascii_lowercase();
    let whole = |amount: f64| {
        let fits = amount.is_finite() && (0.0..u64::MAX as f64).contains(&amount);
        fits.then_some(amount as u64)
    };
    if let Ok(number) = text.parse::<f64>() {
        return whole(number * plain as f64);
    }
    let mut sum = 0.0;
    let mut rest = text.as_str();
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let number: f64 = rest[..end].parse().ok()?;
        rest = rest[end..].trim_start();
        let (unit, each) = units.iter().find(|(unit, _)| rest.starts_with(unit))?;
        rest = rest[unit.len()..].trim_start();
        sum += number * *each as f64;
    }
    if text.is_empty() { None } else { whole(sum) }
}

/// Writes an amount in the first of these units that divides it; otherwise in `least`, the smallest
/// unit.
///
/// # Errors
///
/// The errors of the formatter.
pub fn write(
    f: &mut fmt::Formatter<'_>,
    amount: u64,
    units: &[(&str, u64)],
    least: &str,
) -> fmt::Result {
    let divides = |each: u64| each > 1 && amount >= each && amount.is_multiple_of(each);
    match units.iter().find(|(_, each)| divides(*each)) {
        Some((unit, each)) => write!(f, "{}{unit}", amount / each),
        None => write!(f, "{amount}{least}"),
    }
}
