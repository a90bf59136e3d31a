//! Compares ARCHITECTURE.md with `cargo metadata` and the source, and the registry with the list of layers.

mod modules;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use cargo_metadata::{DependencyKind, MetadataCommand};
use modules::Modules;

const MAP: &str = include_str!("../../ARCHITECTURE.md");
const GLOSSARY: &str = include_str!("../../docs/glossary.md");
const MODULES_PER_CRATE: usize = 22;

/// Returns the rows of the table below a heading of ARCHITECTURE.md, without the header row.
fn rows(heading: &str) -> Vec<Vec<&'static str>> {
    let section = MAP.split_once(&format!("\n{heading}\n")).expect("the heading is there").1;
    cells(section.split("\n## ").next().unwrap_or_default())
}

/// Returns the rows of the table in a text, without the header row.
fn cells(text: &str) -> Vec<Vec<&str>> {
    let rows = text.lines().filter_map(|line| line.strip_prefix("| ")).skip(1);
    rows.map(|row| row.trim_end_matches('|').split('|').map(str::trim).collect()).collect()
}

/// Returns the first and the second cell of each row.
fn table(heading: &str) -> BTreeMap<String, String> {
    rows(heading).iter().map(|row| (row[0].to_owned(), row[1].to_owned())).collect()
}

/// Returns the texts in backticks.
fn quoted(cell: &str) -> Vec<&str> {
    cell.split('`').skip(1).step_by(2).collect()
}

/// Returns the names and the `src` folders of the workspace packages that have one.
fn sources() -> BTreeMap<String, PathBuf> {
    let metadata = MetadataCommand::new()
        .manifest_path(concat!(env!("CARGO_MANIFEST_DIR"), "/../Cargo.toml"))
        .no_deps()
        .exec()
        .expect("cargo metadata runs");
    metadata
        .workspace_packages()
        .iter()
        .map(|p| (p.name.to_string(), p.manifest_path.with_file_name("src").into_std_path_buf()))
        .filter(|(_, source)| source.is_dir())
        .collect()
}

/// Returns the workspace packages and the normal and build dependencies between them.
fn workspace() -> BTreeMap<String, BTreeSet<String>> {
    let metadata = MetadataCommand::new()
        .manifest_path(concat!(env!("CARGO_MANIFEST_DIR"), "/../Cargo.toml"))
        .no_deps()
        .exec()
        .expect("cargo metadata runs");
    let names: BTreeSet<String> =
        metadata.workspace_packages().iter().map(|p| p.name.to_string()).collect();
    metadata
        .workspace_packages()
        .iter()
        .map(|package| {
            let edges = package
                .dependencies
                .iter()
                .filter(|d| d.kind != DependencyKind::Development && names.contains(&d.name))
                .map(|d| d.name.clone())
                .collect();
            (package.name.to_string(), edges)
        })
        .collect()
}

#[test]
fn the_map_lists_exactly_the_crates() {
    let mapped: BTreeSet<_> = table("## Crates").into_keys().collect();
    let real: BTreeSet<_> = workspace().into_keys().collect();
    assert_eq!(mapped, real);
}

#[test]
fn every_dependency_is_allowed_by_the_map() {
    let allowed = table("## Allowed edges");
    for (name, edges) in workspace() {
        let allowed = allowed.get(&name).unwrap_or_else(|| panic!("{name} has no row"));
        if allowed == "*" {
            continue;
        }
        let allowed: BTreeSet<_> =
            allowed.split(", ").filter(|e| !e.is_empty()).map(str::to_owned).collect();
        let extra: Vec<_> = edges.difference(&allowed).collect();
        assert!(extra.is_empty(), "{name} depends on {extra:?}, which ARCHITECTURE.md forbids");
    }
}

#[test]
fn the_registry_has_exactly_the_linked_layers() {
    let registry = ctx_engine_registry::Registry::collect().expect("no two crates share an id");
    let registered: Vec<_> = registry.layers().iter().map(|l| l.id).collect();
    assert_eq!(registered, ctx_layers::LINKED);
}

#[test]
fn some_dependencies_belong_to_one_crate_only() {
    let owners = [
        ("clap", "ctx-commands"),
        ("libloading", "ctx-engine-registry"),
        ("reqwest", "ctx-model"),
        ("tantivy", "ctx-search"),
    ];
    let metadata = MetadataCommand::new()
        .manifest_path(concat!(env!("CARGO_MANIFEST_DIR"), "/../Cargo.toml"))
        .no_deps()
        .exec()
        .expect("cargo metadata runs");
    // What ctx is measured beside is no part of it.
    let packages = metadata.workspace_packages().into_iter();
    for package in packages.filter(|package| package.name.as_str() != "ctx-limits") {
        for dependency in package.dependencies.iter().filter(|d| d.kind == DependencyKind::Normal) {
            let owner = owners.iter().find(|(name, _)| *name == dependency.name);
            if let Some((name, owner)) = owner {
                assert_eq!(package.name.as_str(), *owner, "{name} belongs in {owner}");
            }
        }
    }
}

/// Two modules may use each other. A cycle of three or more has no reading order.
#[test]
fn modules_have_no_cycles_and_are_few() {
    let mut faults = Vec::new();
    for (name, source) in sources() {
        let modules = Modules::read(&source);
        let count = modules.names.len();
        if count > MODULES_PER_CRATE {
            let names: Vec<_> = modules.names.iter().map(String::as_str).collect();
            faults.push(format!(
                "{name} has {count} top-level modules, more than {MODULES_PER_CRATE}: {}. \
                 Move modules that belong together below one of them.",
                names.join(", ")
            ));
        }
        for cycle in modules.cycles() {
            faults.push(format!(
                "{name} has a cycle of {} modules: {}. {} \
                 Move the item that closes the cycle into the module that uses it, or below both.",
                cycle.len(),
                cycle.join(", "),
                modules.edges_within(&cycle)
            ));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn the_table_of_types_names_files_that_declare_them() {
    let sources = sources();
    let mut faults = Vec::new();
    for row in rows("## Types") {
        let [name, types, files] = row[..] else { panic!("a row of three cells: {row:?}") };
        let source = sources.get(name).unwrap_or_else(|| panic!("{name} is not a crate"));
        let mut declared = BTreeSet::new();
        for file in quoted(files) {
            match source.join(file) {
                path if path.is_file() => declared.extend(modules::declared(&path)),
                _ => faults.push(format!("{name}: src/{file} does not exist; change its row")),
            }
        }
        for named in quoted(types).into_iter().filter(|named| !declared.contains(*named)) {
            faults.push(format!("{name}: `{named}` is not declared in {files}; change its row"));
        }
    }
    assert!(faults.is_empty(), "The table Types of ARCHITECTURE.md:\n{}", faults.join("\n"));
}

#[test]
fn the_glossary_is_sorted_and_names_types_that_exist() {
    let declared: BTreeMap<String, BTreeSet<String>> = sources()
        .into_iter()
        .map(|(name, source)| (name, modules::files(&source)))
        .map(|(name, files)| (name, files.iter().flat_map(|f| modules::declared(f)).collect()))
        .collect();
    let rows = cells(GLOSSARY);
    let words: Vec<_> = rows.iter().map(|row| row[0]).collect();
    assert!(words.is_sorted_by(|a, b| a < b), "sort docs/glossary.md by its first column");
    let mut faults = Vec::new();
    for row in rows {
        let [word, _, code] = row[..] else { panic!("a row of three cells: {row:?}") };
        // `A`, `B` in ctx-core, `C` in ctx-session
        let mut named = Vec::new();
        for part in code.split(", ") {
            named.extend(quoted(part));
            let Some((_, name)) = part.split_once(" in ") else { continue };
            let own = declared.get(name).unwrap_or_else(|| panic!("{word}: {name} is not a crate"));
            let missing = named.drain(..).filter(|named| !own.contains(*named));
            faults.extend(missing.map(|named| format!("{word}: `{named}` is not in {name}")));
        }
        faults.extend(named.iter().map(|named| format!("{word}: `{named}` has no crate")));
    }
    assert!(faults.is_empty(), "Change these rows of docs/glossary.md:\n{}", faults.join("\n"));
}

#[test]
fn the_data_path_names_files_that_exist() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates");
    let mut faults = Vec::new();
    for row in rows("## Data path") {
        let begins = crates.join(row[1].trim_matches('`'));
        if !begins.is_file() {
            faults.push(format!("{}: {} does not exist; change its row", row[0], row[1]));
        }
        let source = begins.ancestors().find(|folder| folder.ends_with("src"));
        let source = source.unwrap_or_else(|| panic!("{}: {} is in no src/", row[0], row[1]));
        for step in quoted(row[2]) {
            if !source.join(step).is_file() {
                faults.push(format!("{}: src/{step} does not exist; change its row", row[0]));
            }
        }
    }
    assert!(faults.is_empty(), "The data path of ARCHITECTURE.md:\n{}", faults.join("\n"));
}

#[test]
fn the_first_pages_stay_short() {
    for (name, page, limit) in
        [("README.md", include_str!("../../README.md"), 195), ("ARCHITECTURE.md", MAP, 220)]
    {
        let lines = page.lines().count();
        assert!(
            lines <= limit,
            "{name} has {lines} lines, more than {limit}: move details to a page in docs/"
        );
    }
}

/// Whether one of the allowed licences satisfies the expression.
fn is_allowed(expression: &str, allowed: &[&str]) -> bool {
    let plain = expression.replace(['(', ')'], "").replace('/', " OR ");
    plain.split(" AND ").all(|part| part.split(" OR ").any(|one| allowed.contains(&one.trim())))
}

#[test]
fn the_licences_of_linked_crates_are_allowed() {
    let deny = include_str!("../../deny.toml");
    let list = deny.split_once("allow = [").expect("a list").1.split_once(']').expect("its end").0;
    let allowed: Vec<&str> = list.split('"').skip(1).step_by(2).collect();
    // Dependencies of other platforms are not downloaded.
    let rustc = std::process::Command::new("rustc").arg("-vV").output().expect("rustc runs");
    let rustc = String::from_utf8(rustc.stdout).expect("text");
    let host = rustc.lines().find_map(|line| line.strip_prefix("host: ")).expect("a host");
    let options = ["--offline", "--filter-platform", host].map(str::to_owned);
    let metadata = MetadataCommand::new()
        .manifest_path(concat!(env!("CARGO_MANIFEST_DIR"), "/../Cargo.toml"))
        .other_options(options.to_vec())
        .exec()
        .expect("cargo metadata runs");
    let dependencies: Vec<_> =
        metadata.packages.iter().filter(|package| package.source.is_some()).collect();
    assert!(dependencies.len() > 200);
    for package in dependencies {
        let license = package.license.as_deref().unwrap_or_default();
        assert!(is_allowed(license, &allowed), "{}: {license}", package.name);
    }
}
