//! Compares the reference with each other arm, with an interval over sessions.

use serde::Serialize;

use super::Share;
use super::report::{ArmReport, SessionBench, Setting};
use super::score::Figures;

/// The number of resamples of a bootstrap.
const RESAMPLES: usize = 2_000;

/// The share of resamples that an interval leaves out on each side.
const OUTSIDE: f64 = 0.025;

/// The compared figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Measure {
    /// Handles needed next, strictly.
    Strict,
    /// All handles needed next.
    Loose,
    /// Planted statements.
    Planted,
}

impl Measure {
    fn of(self, figures: &Figures) -> Share {
        match self {
            Self::Strict => figures.strict.present,
            Self::Loose => figures.loose.present,
            Self::Planted => figures.planted.statements,
        }
    }
}

/// The reference's share minus another arm's share, with a bootstrap interval over sessions.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Difference {
    /// The other arm.
    pub arm: String,
    /// The setting.
    #[serde(flatten)]
    pub setting: Setting,
    /// The compared figure.
    pub measure: Measure,
    /// The difference of the shares over all sessions.
    pub difference: f64,
    /// The lower end of the 95 % interval over resampled sessions; null for one session.
    pub low: Option<f64>,
    /// The upper end.
    pub high: Option<f64>,
}

/// Returns all differences to the first arm.
pub(super) fn differences(all: &[ArmReport], sessions: &[SessionBench]) -> Vec<Difference> {
    let Some((reference, others)) = all.split_first() else { return Vec::new() };
    let mut found = Vec::new();
    for (arm, cell) in others.iter().flat_map(|arm| arm.cells.iter().map(move |cell| (arm, cell))) {
        for measure in [Measure::Strict, Measure::Loose, Measure::Planted] {
            let pairs: Vec<(Share, Share)> = sessions
                .iter()
                .filter_map(|session| {
                    let of = |name: &str| {
                        let arm = session.arms.iter().find(|arm| arm.name == name)?;
                        Some(measure.of(arm.figures(cell.setting)?))
                    };
                    of(&reference.name).zip(of(&arm.name))
                })
                .collect();
            let Some(difference) = difference(pairs.iter().copied()) else { continue };
            let (low, high) = interval(&pairs).unzip();
            let (arm, setting) = (arm.name.clone(), cell.setting);
            found.push(Difference { arm, setting, measure, difference, low, high });
        }
    }
    found
}

/// Returns the difference of two shares, summed over sessions.
fn difference(pairs: impl Iterator<Item = (Share, Share)>) -> Option<f64> {
    let (mut one, mut two) = (Share::default(), Share::default());
    for (of_one, of_two) in pairs {
        one += of_one;
        two += of_two;
    }
    Some(one.share()? - two.share()?)
}

/// Returns the interval of the differences of resampled sessions. The same sessions give the same
/// interval.
fn interval(pairs: &[(Share, Share)]) -> Option<(f64, f64)> {
    if pairs.len() < 2 {
        return None;
    }
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    let mut pick = || {
        // xorshift64*
        random ^= random >> 12;
        random ^= random << 25;
        random ^= random >> 27;
        let drawn = random.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33;
        pairs[drawn as usize % pairs.len()]
    };
    let mut drawn: Vec<f64> = (0..RESAMPLES)
        .filter_map(|_| {
            difference((0..pairs.len()).map(|_| pick()).collect::<Vec<_>>().into_iter())
        })
        .collect();
    drawn.sort_by(f64::total_cmp);
    let outside = (drawn.len() as f64 * OUTSIDE) as usize;
    Some((*drawn.get(outside)?, *drawn.get(drawn.len().checked_sub(1 + outside)?)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_is_computed_over_sessions() {
        let pair = |one, two| (Share { of: 10, kept: one }, Share { of: 10, kept: two });
        let same = [pair(8, 5), pair(8, 5), pair(8, 5)];
        let (low, high) = interval(&same).unwrap();
        assert!((low - 0.3).abs() < 1e-9 && (high - 0.3).abs() < 1e-9);
        assert_eq!(interval(&same[..1]), None);
        let mixed = [pair(10, 0), pair(0, 10), pair(10, 0), pair(10, 0)];
        let (low, high) = interval(&mixed).unwrap();
        assert!(low < 0.0 && high > 0.9, "{low} {high}");
        assert!((difference(mixed.into_iter()).unwrap() - 0.5).abs() < 1e-9);
    }
}
