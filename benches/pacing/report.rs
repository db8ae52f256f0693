//! Tables.

use crate::score::Score;

/// The columns of [`details`].
pub(crate) const DETAILS: [&str; 9] = [
    "server",
    "client",
    "share",
    "refused %",
    "0.9 after",
    "refusals till then",
    "till scored",
    "bars",
    "remarks",
];

/// All figures of one run.
pub(crate) fn details(
    server: &str,
    client: &str,
    score: &Score,
    missed: Option<Vec<String>>,
) -> Vec<String> {
    let (reached, before) = match score.reached {
        Some((at, before)) => (format!("{:.1} s", at.as_secs_f64()), before.to_string()),
        None if score.share.is_none() => (String::new(), String::new()),
        None => ("never".into(), String::new()),
    };
    vec![
        server.into(),
        client.into(),
        score
            .share
            .map_or(String::new(), |share| format!("{share:.3}")),
        format!("{:.2}", 100.0 * score.refused),
        reached,
        before,
        score.early.to_string(),
        bars(missed),
        remarks(score),
    ]
}

/// Which bars are missed.
pub(crate) fn bars(missed: Option<Vec<String>>) -> String {
    match missed {
        None => String::new(),
        Some(missed) if missed.is_empty() => "met".into(),
        Some(missed) => missed.join(", "),
    }
}

/// Share and refused in one cell; where less is wanted than allowed, how many waited.
pub(crate) fn short(score: &Score) -> String {
    match (score.share, score.quiet) {
        (Some(share), _) => format!("{share:.3} / {:.2}", 100.0 * score.refused),
        (None, Some((waiters, _))) => format!("{waiters} waited"),
        (None, None) => String::new(),
    }
}

/// A table in Markdown that is also readable as it is.
pub(crate) fn table(heading: &[&str], rows: &[Vec<String>]) -> String {
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        let widest = cells.map(|cell| cell.chars().count()).max();
        widest.unwrap_or(0).max(heading[column].chars().count())
    };
    let widths: Vec<usize> = (0..heading.len()).map(width).collect();
    let line = |cells: &[&str]| {
        let padded = cells.iter().zip(&widths);
        let padded: Vec<String> = padded
            .map(|(cell, &width)| format!("{cell:<width$}"))
            .collect();
        format!("| {} |\n", padded.join(" | "))
    };
    let rules: Vec<String> = widths.iter().map(|&width| "-".repeat(width)).collect();
    let rules: Vec<&str> = rules.iter().map(String::as_str).collect();
    let mut text = line(heading) + &line(&rules);
    for row in rows {
        text += &line(&row.iter().map(String::as_str).collect::<Vec<_>>());
    }
    text
}

fn remarks(score: &Score) -> String {
    let mut remarks = Vec::new();
    if let Some(drop) = score.drop {
        let under = drop.under.map_or("never".into(), |time| {
            format!("after {:.1} s", time.as_secs_f64())
        });
        remarks.push(format!(
            "fall: under {under}, {:.2} % refused in 30 s; rise: {:.3}",
            100.0 * drop.refused,
            drop.share
        ));
    }
    if score.refusals <= 20 {
        remarks.push(format!("{} refusals scored", score.refusals));
    }
    if let Some((waiters, longest)) = score.quiet {
        let longest = 1_000.0 * longest.as_secs_f64();
        remarks.push(format!("{waiters} waited, {longest:.0} ms at most"));
    }
    if score.split.len() > 1 {
        let parts = score.split.iter().map(|part| format!("{part:.2}"));
        remarks.push(format!("split {}", parts.collect::<Vec<_>>().join(" : ")));
    }
    if !score.note.is_empty() {
        remarks.push(score.note.clone());
    }
    remarks.join("; ")
}
