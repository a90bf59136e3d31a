//! Calibrates the counter's sizes of a session to the provider's.

use std::collections::HashMap;

use ctx_core::{
    Calibration, Counter, Entry, EntryId, MIN_MESSAGE_TOKENS, Result, TokenLedger, Tokens,
};
use ctx_model::Prices;
use ctx_session::{BranchMessage, CompactionAuthor, StoredCompaction, Transcript};
use serde::Serialize;

use crate::RecordedUsage;

/// [`SessionCalibration::constant`] is omitted if it leaves messages less than this share of the
/// limit.
const LEAST_ROOM: f64 = 0.25;

/// Requests whose residual exceeds this many times the median are not fitted: the client sent
/// something that is not in the transcript.
const OUTLIER: f64 = 4.0;

/// The factor is fitted only if the largest request is at least this many times the smallest.
const LEAST_SPREAD: f64 = 1.5;

/// If the median error is larger, the reported figures are not the size of these messages. They may
/// be a gateway's placeholder, or belong to another session.
const WORST_ERROR: f64 = 0.5;

/// The maximum number of messages in all contexts after compactions, as a multiple of the session's
/// messages. Compactions that keep little need about 2.
const CONTEXTS: usize = 8;

/// The provider's size of a request, as a linear function of the counted size of its messages:
/// `constant + factor * counted`.
///
/// The constant is the size of the request's parts that are not in the transcript, mainly system
/// prompt and tool schemas. The factor corrects the counter's error.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionCalibration {
    /// Tokens of every request besides its messages.
    pub constant: u64,
    /// Reported tokens per counted token, between 1/4 and 4.
    pub factor: f64,
    /// The number of requests used for the fit.
    pub requests: usize,
    /// The median of the remaining absolute relative errors over these requests.
    pub median_error: f64,
    /// Whether simulated requests include the constant. They do not if it leaves the messages too
    /// little space in the simulated window.
    pub constant_applied: bool,
}

/// The usage that the provider reported of a session, and the calibration derived from it.
#[derive(Clone, Debug, Default)]
pub struct Baseline {
    /// The reported usage.
    pub recorded: RecordedUsage,
    /// The calibration of counted sizes; `None` if no reported figures match them.
    pub calibration: Option<SessionCalibration>,
    /// The compactions that the agent itself made.
    pub compactions: Vec<RecordedCompaction>,
}

/// A compaction that the agent itself made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RecordedCompaction {
    /// Its entry.
    pub id: EntryId,
    /// The next request after it, as an index into `requests`; null if none followed.
    pub request: Option<usize>,
    /// Who made it.
    pub by: CompactionAuthor,
    /// Tokens of the context before; null if not recorded.
    pub tokens_before: Option<Tokens>,
    /// Tokens of the context after; null if not recorded.
    pub tokens_after: Option<Tokens>,
}

/// Returns the index of the request of `line` that follows each compaction; `None` without one.
#[must_use]
pub fn requests_after<'a>(
    transcript: &Transcript,
    line: impl IntoIterator<Item = &'a BranchMessage>,
    compactions: &[StoredCompaction],
) -> Vec<Option<usize>> {
    let path = transcript.path(None).unwrap_or_default();
    let places: HashMap<usize, usize> =
        path.into_iter().enumerate().map(|(place, index)| (index, place)).collect();
    let place = |id: &str| places.get(&transcript.index_of(id)?).copied();
    let requests = line.into_iter().filter(|item| item.request);
    let requests: Vec<usize> = requests.filter_map(|item| place(item.entry.id())).collect();
    let after = |compaction: &StoredCompaction| {
        let place = place(&compaction.id)?;
        let before = requests.partition_point(|&request| request < place);
        (before < requests.len()).then_some(before)
    };
    compactions.iter().map(after).collect()
}

impl Baseline {
    /// Reads a session once and calibrates `ledger`'s counter; its limit may exclude the constant.
    ///
    /// # Errors
    ///
    /// Errors of reading the transcript.
    pub fn of(transcript: &Transcript, ledger: &TokenLedger) -> Result<Self> {
        let recorded = RecordedUsage::of(transcript)?;
        let line = transcript.main_line()?;
        let size = |entry: &Entry| seen(entry, ledger.counter());
        let fitted = SessionCalibration::fit(transcript, &line, &recorded, size)?;
        let calibration = fitted.map(|fitted| SessionCalibration {
            constant_applied: fitted.has_room(ledger.limit()),
            ..fitted
        });
        let list = transcript.compaction_list(None)?;
        let requests = requests_after(transcript, &line, &list);
        let own = list.into_iter().zip(requests);
        let own = own.filter(|(stored, _)| !stored.undone && is_own(transcript, stored));
        let compactions = own.map(|(stored, request)| RecordedCompaction {
            id: stored.id,
            request,
            by: stored.by,
            tokens_before: stored.tokens_before,
            tokens_after: stored.tokens_after,
        });
        let compactions = compactions.collect();
        Ok(Self { recorded, calibration, compactions })
    }

    /// Returns the prices of simulated requests. Their cache writes last as long as the recorded
    /// cache writes.
    pub fn prices(&self, prices: Option<Prices>) -> Option<Prices> {
        prices.map(|prices| prices.with_hour_writes(self.recorded.hour_writes()))
    }

    /// Returns the ledger, corrected if there is a calibration.
    pub fn corrected(&self, ledger: TokenLedger) -> TokenLedger {
        match &self.calibration {
            Some(calibration) => calibration.apply(ledger),
            None => ledger,
        }
    }
}

/// Returns the tokens of an entry that a model sees.
pub(crate) fn seen(entry: &Entry, counter: &Counter) -> Result<Tokens> {
    let (facts, tokens) = entry.measure(counter)?;
    Ok(if facts.in_model_context { tokens } else { Tokens::ZERO })
}

/// Whether the agent that wrote the session made this compaction. A compaction that ctx added to
/// another program's session changed none of the recorded requests.
fn is_own(transcript: &Transcript, compaction: &StoredCompaction) -> bool {
    compaction.by != CompactionAuthor::Ctx || transcript.is_ctx_session()
}

/// A request: the counted size of its messages, and the reported size.
type Sample = (f64, f64);

impl SessionCalibration {
    /// Fits the counted sizes of the requests of `line` (after the agent's own compactions) to the
    /// reported ones. Returns `None` if no reported figures match the messages. `size`
    /// returns the tokens of an entry, zero for one that the model does not see.
    ///
    /// # Errors
    ///
    /// Errors of reading the transcript, and errors of `size`.
    pub fn fit(
        transcript: &Transcript,
        line: &[BranchMessage],
        recorded: &RecordedUsage,
        mut size: impl FnMut(&Entry) -> Result<Tokens>,
    ) -> Result<Option<Self>> {
        let cuts = cuts(transcript, line.len(), &mut size)?;
        let sizes = walk(transcript, line, &cuts, Tokens::ZERO, &mut size)?;
        let answers = line.iter().filter(|item| item.request);
        let samples = answers.zip(sizes).filter_map(|(item, (counted, _))| {
            Some((f64::from(counted.0), recorded.prompt(item.entry.id())? as f64))
        });
        Ok(Self::of(&samples.collect::<Vec<_>>()))
    }

    /// Least squares of the relative errors, repeated without outliers.
    fn of(samples: &[Sample]) -> Option<Self> {
        let (constant, factor) = linear(samples)?;
        let error = |(counted, reported): &Sample, (constant, factor): (f64, f64)| {
            (constant + factor * counted - reported).abs() / reported
        };
        let median_of = |line| median(samples.iter().map(|sample| error(sample, line)).collect());
        let bound = (OUTLIER * median_of((constant, factor))?).max(0.01);
        let regular: Vec<Sample> =
            samples.iter().copied().filter(|s| error(s, (constant, factor)) <= bound).collect();
        let (constant, factor) = linear(&regular).unwrap_or((constant, factor));
        let median_error = median_of((constant, factor)).filter(|error| *error <= WORST_ERROR)?;
        Some(Self {
            constant: constant.round() as u64,
            factor,
            requests: samples.len(),
            median_error,
            constant_applied: true,
        })
    }

    /// Returns the ledger corrected by this calibration.
    pub fn apply(&self, ledger: TokenLedger) -> TokenLedger {
        let fixed = match self.constant_applied {
            // The ledger multiplies its fixed part by the factor as well.
            true => Tokens((self.constant as f64 / self.factor).round() as u32),
            false => ledger.fixed(),
        };
        let tools = ledger.tools.min(fixed);
        let mut ledger = ledger.with_system(fixed - tools).with_tools(tools);
        ledger.calibration = Calibration::by(self.factor);
        ledger
    }

    /// Whether the constant leaves enough of a limit to messages.
    fn has_room(&self, limit: Tokens) -> bool {
        let room = limit.scale(LEAST_ROOM).max(MIN_MESSAGE_TOKENS);
        self.constant + room.get() <= limit.get()
    }
}

/// Returns `constant` and `factor` by least squares of the relative errors. Both are at least 0.
/// Returns `None` without samples.
fn linear(samples: &[Sample]) -> Option<(f64, f64)> {
    let sums = samples.iter().map(|&(x, y)| (1.0 / (y * y), x, y));
    let (mut w, mut wx, mut wy, mut wxx, mut wxy) = (0.0, 0.0, 0.0, 0.0, 0.0);
    let (mut least, mut most) = (f64::MAX, 0.0_f64);
    for (weight, x, y) in sums {
        w += weight;
        wx += weight * x;
        wy += weight * y;
        wxx += weight * x * x;
        wxy += weight * x * y;
        (least, most) = (least.min(x), most.max(x));
    }
    if samples.is_empty() {
        return None;
    }
    let variance = w * wxx - wx * wx;
    let slope = match most > least.max(1.0) * LEAST_SPREAD && variance > 0.0 {
        true => (w * wxy - wx * wy) / variance,
        false => 1.0,
    };
    let factor = Calibration::by(slope).factor();
    let constant = (wy - factor * wx) / w;
    if constant >= 0.0 || wxx == 0.0 {
        return Some((constant.max(0.0), factor));
    }
    Some((0.0, Calibration::by(wxy / wxx).factor()))
}

/// Returns the middle value, or the mean of the two in the middle.
pub(crate) fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let upper = *values.get(values.len() / 2)?;
    let lower = *values.get((values.len() - 1) / 2)?;
    Some(f64::midpoint(lower, upper))
}

/// A compaction on the branch: its index among the entries, and the size of the context after it.
pub(crate) type Cut = (usize, Tokens);

/// Returns the agent's own compactions on the path to the leaf, oldest first. In a damaged file
/// each may keep everything; then only the first ones are returned.
fn cuts(
    transcript: &Transcript,
    messages: usize,
    size: &mut impl FnMut(&Entry) -> Result<Tokens>,
) -> Result<Vec<Cut>> {
    let mut left = messages.saturating_mul(CONTEXTS);
    let mut cuts = Vec::new();
    for compaction in transcript.compaction_list(None)? {
        if compaction.undone || !is_own(transcript, &compaction) {
            continue;
        }
        let Some(index) = transcript.index_of(&compaction.id) else { continue };
        let entries = transcript.context(Some(&compaction.id))?.entries;
        if entries.len() > left {
            break;
        }
        left -= entries.len();
        let sizes = entries.iter().map(|entry| size(entry));
        cuts.push((index, sizes.sum::<Result<Tokens>>()?));
    }
    Ok(cuts)
}

/// Walks a session with the agent's own compactions. Returns for each request its tokens, and the
/// tokens of its beginning that it shares with the previous request.
pub(crate) fn walk(
    transcript: &Transcript,
    line: &[BranchMessage],
    cuts: &[Cut],
    fixed: Tokens,
    size: &mut impl FnMut(&Entry) -> Result<Tokens>,
) -> Result<Vec<(Tokens, Tokens)>> {
    let mut requests = Vec::new();
    let (mut total, mut prefix) = (fixed, Tokens::ZERO);
    let mut next = cuts.iter().peekable();
    for item in line {
        let index = transcript.index_of(item.entry.id()).unwrap_or_default();
        while let Some((_, size)) = next.next_if(|(cut, _)| *cut < index) {
            (total, prefix) = (fixed + *size, fixed);
        }
        if item.request {
            requests.push((total, prefix));
            prefix = total;
        }
        total += size(&item.entry)?;
    }
    Ok(requests)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(line: impl Fn(f64) -> f64) -> Vec<Sample> {
        (1..40).map(|n| (f64::from(n) * 1_000.0, line(f64::from(n) * 1_000.0))).collect()
    }

    #[test]
    fn a_constant_and_a_factor_are_found() {
        let fit = SessionCalibration::of(&samples(|counted| 42_000.0 + 1.4 * counted)).unwrap();
        assert_eq!((fit.constant, fit.requests), (42_000, 39));
        assert!((fit.factor - 1.4).abs() < 1e-9 && fit.median_error < 1e-9, "{fit:?}");
    }

    #[test]
    fn outliers_do_not_affect_the_fit() {
        let mut all = samples(|counted| 20_000.0 + 1.2 * counted);
        for (_, reported) in all.iter_mut().step_by(8) {
            *reported *= 3.0;
        }
        let fit = SessionCalibration::of(&all).unwrap();
        assert!((fit.factor - 1.2).abs() < 0.02, "{fit:?}");
        assert!((19_500..20_500).contains(&fit.constant), "{fit:?}");
    }

    #[test]
    fn samples_too_similar_for_a_factor_give_a_constant() {
        let fit = |samples: &[Sample]| SessionCalibration::of(samples);
        assert_eq!(fit(&[]), None);
        let one = fit(&[(1_000.0, 31_000.0)]).unwrap();
        assert_eq!((one.constant, one.factor), (30_000, 1.0));
        let two = fit(&[(1_000.0, 31_000.0), (1_100.0, 35_000.0)]).unwrap();
        assert_eq!(two.factor, 1.0);
        // The reported size is below the counted size, but the constant cannot be negative.
        let less = fit(&[(1_000.0, 500.0)]).unwrap();
        assert_eq!((less.constant, less.factor), (0, 0.5));
        let nothing = fit(&[(0.0, 700.0)]).unwrap();
        assert_eq!((nothing.constant, nothing.factor), (700, 1.0));
    }

    #[test]
    fn a_placeholder_is_not_the_size_of_messages() {
        assert_eq!(SessionCalibration::of(&samples(|_| 10.0)), None);
        let small = [(1_000.0, 1_020.0), (1_000_000.0, 1_020.0), (2_000_000.0, 1_020.0)];
        assert_eq!(SessionCalibration::of(&small), None);
    }

    #[test]
    fn a_calibrated_ledger_measures_like_the_provider() {
        let ledger = TokenLedger::new(Default::default(), Tokens(200_000), Tokens(20_000))
            .with_system(Tokens(500))
            .with_tools(Tokens(300));
        let fit = SessionCalibration::of(&samples(|counted| 42_000.0 + 1.4 * counted)).unwrap();
        let corrected = fit.apply(ledger.clone());
        let size = corrected.corrected(corrected.fixed() + Tokens(10_000));
        assert!(size.0.abs_diff(56_000) <= 2, "{size:?}");
        assert_eq!(corrected.tools, Tokens(300));
        let bare = SessionCalibration { constant_applied: false, ..fit }.apply(ledger);
        assert_eq!(bare.corrected(bare.fixed()), Tokens(800).scale(1.4));
        assert!(fit.has_room(Tokens(180_000)) && !fit.has_room(Tokens(50_000)));
    }
}
