//! The terminal output of `ctx eval compact`.

use ctx_eval::eval::bench::{
    ArmReport, BenchReport, Difference, Figures, Loss, Measure, Setting, Share,
};
use ctx_terminal::format::{counted, escaped, percent, shortened, thousands, usd};
use ctx_terminal::out::{BOLD, Cell, DIM, Out, RED, Table, terminal_columns};

use crate::commands::eval::print::{dimmed, faults, heading};
use crate::commands::status::print_session;

/// Maximum length of a failure's reason, and of a statement.
const REASON_CHARS: usize = 300;

type Column<'a> = (String, Box<dyn Fn(&ArmReport) -> Cell + 'a>);

pub(super) fn print(report: &BenchReport, out: &Out) -> anyhow::Result<()> {
    sessions(report, out)?;
    let Some(shown) = shown(report) else { return Ok(()) };
    needed(report, shown, out)?;
    kinds(report, shown, out)?;
    if report.statements > 0 {
        planted(report, shown, out)?;
    }
    work(report, shown, out)?;
    recorded(report, out)?;
    for arm in &report.arms {
        if let Some(why) = arm.cells.iter().find_map(|cell| cell.figures.failed.as_ref()) {
            let (name, why) = (escaped(&arm.name), shortened(why, REASON_CHARS));
            out.line(format!("{RED}failed:{RED:#} {name}: {why}"))?;
        }
    }
    report.worst.iter().try_for_each(|loss| lost(loss, out))?;
    notes(report, out)
}

/// Returns the setting of the tables: the middle budget, after one compaction.
fn shown(report: &BenchReport) -> Option<Setting> {
    let budget = report.budgets.get(report.budgets.len() / 2).copied();
    Some(Setting { budget: Some(budget?), rounds: *report.rounds.first()? })
}

fn sessions(report: &BenchReport, out: &Out) -> anyhow::Result<()> {
    for session in &report.sessions {
        print_session(&session.session, out)?;
        let sizes = session.cuts.iter().map(|cut| thousands(cut.history_tokens));
        let sizes = sizes.collect::<Vec<_>>().join(", ");
        let cuts = match session.cuts.len() {
            0 => "too short to be cut".to_owned(),
            n => format!("{}, after {sizes} tokens", counted(n, "cut")),
        };
        out.line(format!("{DIM}{cuts}{DIM:#}"))?;
    }
    Ok(())
}

/// Prints a table of the arms with figures in a setting.
fn table(
    report: &BenchReport,
    setting: Setting,
    columns: &[Column<'_>],
    out: &Out,
) -> anyhow::Result<()> {
    let arms = report.arms.iter().filter(|arm| arm.figures(setting).is_some());
    let name = |arm: &ArmReport| match arm.compared {
        true => Cell::from(arm.name.clone()),
        false => Cell::styled(format!("({})", arm.name), DIM),
    };
    let row = |arm: &ArmReport| {
        [name(arm)].into_iter().chain(columns.iter().map(|column| column.1(arm))).collect()
    };
    let header = ["arm".into()].into_iter();
    let header = header.chain(columns.iter().map(|column| column.0.clone().into()));
    let rows = arms.map(row).collect();
    out.line(Table::of_numbers(header.collect(), rows).text(terminal_columns()).0)?;
    Ok(())
}

fn column<'a>(
    name: impl Into<String>,
    setting: Setting,
    cell: impl Fn(&Figures) -> Cell + 'a,
) -> Column<'a> {
    let none = || Cell::from("-");
    (name.into(), Box::new(move |arm| arm.figures(setting).map_or_else(none, &cell)))
}

fn difference<'a>(report: &'a BenchReport, setting: Setting, measure: Measure) -> Column<'a> {
    let cell = move |arm: &ArmReport| match report.difference(&arm.name, setting, measure) {
        Some(found) => points(found),
        None => "-".into(),
    };
    (format!("{} less it", report.reference), Box::new(cell))
}

/// Returns a difference in points, red if the reference keeps less.
fn points(found: &Difference) -> Cell {
    let points = |share: f64| format!("{:+.1}", share * 100.0);
    let text = match found.low.zip(found.high) {
        Some((low, high)) => {
            format!("{} [{} {}]", points(found.difference), points(low), points(high))
        }
        None => points(found.difference),
    };
    if found.difference < 0.0 { Cell::styled(text, RED) } else { text.into() }
}

fn share(share: Share) -> Cell {
    share.share().map_or_else(|| "-".to_owned(), percent).into()
}

fn tokens(figures: &Figures) -> Cell {
    thousands(figures.tokens / figures.histories.max(1)).into()
}

fn needed(report: &BenchReport, shown: Setting, out: &Out) -> anyhow::Result<()> {
    let title = format!(
        "Needed next: handles that the agent used within 30,000 tokens and could only know from before \
         the cut, still in the request after {}",
        counted(shown.rounds, "compaction"),
    );
    heading(out, &title)?;
    let at = |budget: f64| Setting { budget: Some(budget), ..shown };
    let name = |budget: f64| format!("at {:.0} %", budget * 100.0);
    let mut columns: Vec<Column<'_>> = report
        .budgets
        .iter()
        .map(|&it| column(name(it), at(it), |f| share(f.strict.present)))
        .collect();
    columns.push(difference(report, shown, Measure::Strict));
    columns.push(column("with a search", shown, |f| share(f.strict.within_reach)));
    columns.push(column("all used", shown, |f| share(f.loose.present)));
    columns.push(column("tokens", shown, tokens));
    table(report, shown, &columns, out)
}

fn kinds(report: &BenchReport, shown: Setting, out: &Out) -> anyhow::Result<()> {
    heading(out, &format!("The same by kind, at {}", setting(shown)))?;
    let kinds = ctx_eval::eval::bench::HandleKind::ALL;
    let columns: Vec<_> = kinds
        .map(|kind| {
            let of = move |f: &Figures| f.strict.kinds.get(&kind).copied().unwrap_or_default();
            column(kind.name(), shown, move |f| share(of(f)))
        })
        .into_iter()
        .collect();
    table(report, shown, &columns, out)
}

fn planted(report: &BenchReport, shown: Setting, out: &Out) -> anyhow::Result<()> {
    heading(out, &format!("Planted statements, at {}", percent_of(shown)))?;
    let mut columns: Vec<Column<'_>> = Vec::new();
    for &rounds in &report.rounds {
        let at = Setting { rounds, ..shown };
        let name = format!("kept after {rounds}");
        columns.push(column(name, at, |f| share(f.planted.statements)));
    }
    let last = Setting { rounds: report.rounds.last().copied().unwrap_or(1), ..shown };
    columns.push(difference(report, last, Measure::Planted));
    columns.push(column("old beside new", last, |f| match f.planted.updates.of {
        0 => "-".into(),
        of => faults(f.planted.stale_beside_new).suffixed(&format!(" of {of}")),
    }));
    columns.push(column("distractors", last, |f| share(f.planted.distractors)));
    columns.push(column("pairs", last, |f| share(f.planted.pairs)));
    table(report, shown, &columns, out)?;
    let receipts = |arm: &ArmReport| {
        let found = arm.figures(last)?.receipt;
        let (said, gap) =
            (found.coverage / found.receipts as f64, found.gap * 100.0 / found.receipts as f64);
        (found.receipts > 0).then(|| {
            format!("{}: {} by its receipts, off by {gap:.1} points", arm.name, percent(said))
        })
    };
    let receipts: Vec<String> = report.arms.iter().filter_map(receipts).collect();
    for line in receipts {
        dimmed(out, "", &format!("after {}, {line}", last.rounds))?;
    }
    Ok(())
}

fn work(report: &BenchReport, shown: Setting, out: &Out) -> anyhow::Result<()> {
    heading(out, &format!("Work and cost, at {}", setting(shown)))?;
    let columns = [
        column("files named", shown, |f| share(f.files)),
        column("open todos", shown, |f| share(f.todos)),
        column("tokens", shown, tokens),
        column("cost", shown, |f| f.cost_usd.map_or_else(|| "-".to_owned(), usd).into()),
        column("ms", shown, |f| format!("{:.0}", f.millis / f.compactions.max(1) as f64).into()),
        column("wedges", shown, |f| faults(f.wedges)),
        column("failures", shown, |f| faults(f.failures)),
    ];
    table(report, shown, &columns, out)
}

fn recorded(report: &BenchReport, out: &Out) -> anyhow::Result<()> {
    let here = Setting { budget: None, rounds: 1 };
    if !report.arms.iter().any(|arm| arm.figures(here).is_some()) {
        return Ok(());
    }
    let title = "Where the agents compacted themselves, at most the tokens of their own requests; \
                 used in the rest of the session";
    heading(out, title)?;
    let columns = [
        column("compactions", here, |f| thousands(f.histories).into()),
        column("strict", here, |f| share(f.strict.present)),
        column("all used", here, |f| share(f.loose.present)),
        difference(report, here, Measure::Loose),
        column("files named", here, |f| share(f.files)),
        column("tokens", here, tokens),
    ];
    table(report, here, &columns, out)
}

/// Prints the losses of the reference at a cut.
fn lost(loss: &Loss, out: &Out) -> anyhow::Result<()> {
    let (session, entry) = (escaped(&loss.session), escaped(&loss.entry_id));
    let kept = format!("{} of {} kept", loss.strict.kept, loss.strict.of);
    out.line(format!(
        "\n{BOLD}{session} before {entry}, {}: {kept}{BOLD:#}",
        setting(loss.setting)
    ))?;
    for (kind, names) in &loss.lost {
        list(kind.name(), names, out)?;
    }
    list("file", &loss.files, out)?;
    list("planted", &loss.statements, out)
}

fn list(name: &str, lost: &[String], out: &Out) -> anyhow::Result<()> {
    if lost.is_empty() {
        return Ok(());
    }
    let lost: Vec<_> = lost.iter().map(|it| shortened(it, REASON_CHARS)).collect();
    out.line(format!("  {name}: {}", lost.join(" | ")))?;
    Ok(())
}

fn setting(setting: Setting) -> String {
    format!("{}, {}", percent_of(setting), counted(setting.rounds, "compaction"))
}

fn percent_of(setting: Setting) -> String {
    match setting.budget {
        Some(budget) => format!("{:.0} %", budget * 100.0),
        None => "the recorded size".to_owned(),
    }
}

fn notes(report: &BenchReport, out: &Out) -> anyhow::Result<()> {
    out.line("")?;
    let reference = &report.reference;
    let notes = [
        "what is counted are handles (paths, names, hashes, flags, quoted text, errors, numbers), not \
         reasons; a list of identifiers plays to it and is outside of the comparison"
            .to_owned(),
        format!(
            "no arm has more tokens than {reference}: the oldest text of a larger request is cut, and \
             counted as a wedge. A smaller one stays smaller: read shares with tokens"
        ),
        format!(
            "{reference} less it: points, with an interval of 95 % over sessions; red where {reference} \
             keeps less; no interval for one session"
        ),
        "with a search: also what one call of ctx's lexical search over the originals finds, for the \
         words of the message that uses the handle"
            .to_owned(),
        "cost: the summaries, and the requests within 30,000 tokens, by the cache rule of ctx replay; \
         ms is of this machine and differs from run to run"
            .to_owned(),
        "docs/bench.md specifies the measures and their weaknesses".to_owned(),
    ];
    notes.iter().try_for_each(|note| dimmed(out, "- ", note))
}
