//! `ctx engines check`.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use ctx_config::Config;
use ctx_core::{ContextEngine, ErrorKind};
use ctx_engine_registry::find::{Search, TransportKind};
use ctx_engine_registry::{BuildContext, Plugins, Registry};
use ctx_terminal::failure::{self, misuse};
use ctx_terminal::format::{counted, escaped};
use ctx_terminal::out::{BOLD, Cell, DIM, GREEN, Out, RED, YELLOW, table};
use ctx_terminal::shutdown;
use ctx_testkit::conformance::{
    CaseReport, Options, Outcome, Plugin, Report, Start, cases, check_with,
};
use serde_json::{Value, json};

use crate::args::{CheckEngine, Global};
use crate::setup;

pub(super) fn run(global: &Global, args: &CheckEngine, out: &Out) -> anyhow::Result<ExitCode> {
    let config = setup::config(global)?;
    let subject = Subject::named(args, &config)?;
    let options = Options::new(args.level);
    let bar = out.progress("checking", cases(args.level).count());
    let (id, carrier) = (subject.id().to_owned(), subject.carrier());
    let start = move |start: &Start| subject.start(start);
    let report = check_with(start, &options, |_| bar.inc(1));
    bar.finish_and_clear();
    let printed = match args.json {
        true => out.json(&checked(&report, &id, carrier)),
        false => print(&report, &id, carrier, out),
    };
    // The exit code does not depend on how much of the report was read.
    failure::ignore_closed_pipe(printed)?;
    Ok(if report.is_passed() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The engine to check.
enum Subject {
    Builtin { id: String, config: Box<Config> },
    Plugin { plugin: Box<Plugin>, carrier: TransportKind },
}

impl Subject {
    /// Finds a built-in or installed engine by its id, or an engine by the path of its file or
    /// folder. A name without a separator is a path only if no engine has this id.
    fn named(args: &CheckEngine, config: &Config) -> anyhow::Result<Self> {
        let name = args.engine.to_string_lossy();
        let is_path = args.engine.components().count() > 1
            || args.engine.is_absolute()
            || name.starts_with('.')
            || name.ends_with(std::path::is_separator);
        let registry = Registry::collect()?.with_search(Search::from_env());
        if !is_path && registry.engines().any(|engine| engine.id == name) {
            return Ok(Self::Builtin { id: name.into_owned(), config: Box::new(config.clone()) });
        }
        let plugins: Plugins = config.section()?;
        let found = if is_path { None } else { Some(registry.find_engine(&name)) };
        let plugin = match found {
            Some(Ok(_)) => Plugin::installed(&name, registry.search().clone())?,
            Some(Err(error)) if !is_missing(&error, &args.engine) => {
                return Err(if error.kind() == ErrorKind::NotFound {
                    misuse(error.hint("give one of the known ids, or a path such as ./engine.py"))
                } else {
                    error.into()
                });
            }
            _ => Plugin::read(&args.engine, args.name.as_deref())?,
        };
        if let Some(copy) = plugin.copy() {
            shutdown::removes(copy);
        }
        let mut settings = plugins.engine(plugin.id());
        // `--trust` applies, not the configured trust.
        settings.trust = Some(args.trust);
        let carrier = plugin.transport(args.trust)?;
        let plugin = Box::new(plugin.with_settings(settings));
        Ok(Self::Plugin { plugin, carrier })
    }

    fn id(&self) -> &str {
        match self {
            Self::Builtin { id, .. } => id,
            Self::Plugin { plugin, .. } => plugin.id(),
        }
    }

    fn carrier(&self) -> &'static str {
        match self {
            Self::Builtin { .. } => TransportKind::Builtin.name(),
            Self::Plugin { carrier, .. } => carrier.name(),
        }
    }

    fn start(&self, start: &Start) -> ctx_core::Result<Arc<dyn ContextEngine>> {
        let (id, config) = match self {
            Self::Plugin { plugin, .. } => return plugin.start(start),
            Self::Builtin { id, config } => (id, config),
        };
        let registry = Registry::collect()?;
        let (services, window) = (&start.services, start.window.into());
        let context = BuildContext { config, services, window, registry: &registry };
        registry.build_engine(Some(id), &context)
    }
}

/// Whether no engine has the id, but a file or folder of that name exists.
fn is_missing(error: &ctx_core::Error, path: &Path) -> bool {
    error.kind() == ErrorKind::NotFound && path.exists()
}

/// Returns the output of `--json`. The name and the version of an engine that did not start are null.
fn checked(report: &Report, id: &str, carrier: &str) -> Value {
    let info = report.engine.as_ref();
    json!({
        "ok": report.is_passed(),
        "engine": {
            "id": id,
            "name": info.map(|info| &*info.name),
            "version": info.map(|info| &*info.version),
            "carrier": carrier,
            "ownsCompaction": info.map(|info| info.owns_compaction),
        },
        "level": report.level,
        "passed": report.count("passed"),
        "failed": report.count("failed"),
        "skipped": report.count("skipped"),
        "rows": report.cases.iter().map(row).collect::<Vec<_>>(),
    })
}

fn row(case: &CaseReport) -> Value {
    let CaseReport { name, level, about, .. } = *case;
    let [reason, hint, note] = said(case);
    json!({
        "name": name, "level": level, "about": about, "result": case.result(),
        "reason": reason, "hint": hint, "note": note,
    })
}

/// Returns why a case failed or was skipped, the hint for that, and the measured value.
fn said(case: &CaseReport) -> [Option<&str>; 3] {
    match &case.outcome {
        Outcome::Passed { note } => [None, None, note.as_deref()],
        Outcome::Failed { reason, hint } => [Some(reason), Some(hint), None],
        Outcome::Skipped { reason } => [Some(reason), None, None],
    }
}

fn print(report: &Report, id: &str, carrier: &str, out: &Out) -> anyhow::Result<()> {
    let version = report.engine.as_ref().map(|info| escaped(&info.version)).unwrap_or_default();
    let level = report.level.name();
    out.line(format!(
        "{BOLD}{}{BOLD:#} {version} {DIM}({carrier}, level {level}){DIM:#}",
        escaped(id)
    ))?;
    let rows = report.cases.iter().map(|case| {
        let style = match case.result() {
            "passed" => GREEN,
            "failed" => RED,
            _ => YELLOW,
        };
        let [reason, _, note] = said(case);
        let said = reason.or(note).unwrap_or_default();
        Vec::<Cell>::from([case.name.into(), Cell::styled(case.result(), style), said.into()])
    });
    out.line(table(&["case", "result", "reason"], rows.collect(), 0))?;
    for case in report.cases.iter().filter(|case| case.result() == "failed") {
        let reason = said(case)[0].unwrap_or_default();
        // The table truncates a long reason.
        if Cell::from(reason).is_cut() {
            out.line(format!("{RED}reason:{RED:#} {}: {}", case.name, escaped(reason)))?;
        }
    }
    for (case, hint) in report.cases.iter().filter_map(|case| Some((case, said(case)[1]?))) {
        out.line(format!("{GREEN}hint:{GREEN:#} {}: {}", case.name, escaped(hint)))?;
    }
    let (passed, failed) = (report.count("passed"), report.count("failed"));
    let skipped = report.count("skipped");
    let of = counted(report.cases.len(), "case");
    let style = if failed == 0 { DIM } else { RED };
    out.line(format!(
        "\n{GREEN}{passed} passed{GREEN:#}, {style}{failed} failed{style:#}, {skipped} skipped of {of}"
    ))?;
    Ok(())
}
