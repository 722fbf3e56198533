#!/usr/bin/env bash
# Keeps one comment on a pull request up to date: the first that begins with the marker and is by the login of the token.
#
#   BODY     file with the Markdown of `rag-harness report`
#   MARKER   what tells this comment from others; a suite of its own in the same repository has another
#   NUMBER   of the pull request; empty: it is looked for by HEAD_OWNER, HEAD_BRANCH and HEAD_SHA, which are of the event
#   GH_TOKEN, GITHUB_REPOSITORY   as GitHub sets them
#
# What may not be written (403) is a warning: a comment is no gate.
set -euo pipefail

login='github-actions[bot]'
first="<!-- rag-harness: ${MARKER//[^A-Za-z0-9_.-]/-} -->"
most=60000 # bytes; GitHub takes 65,536 characters

if [ -z "${NUMBER:-}" ]; then
  export HEAD_SHA
  NUMBER=$(gh api --method GET "repos/$GITHUB_REPOSITORY/pulls" -f state=open -f "head=$HEAD_OWNER:$HEAD_BRANCH" \
    --jq '[.[] | select(.head.sha == env.HEAD_SHA)][0].number // empty')
fi
if ! [[ $NUMBER =~ ^[0-9]+$ ]]; then
  echo "No open pull request has this commit as its last one: no comment."
  exit 0
fi

whole=$(mktemp)
{
  echo "$first"
  head -c "$most" "$BODY" | iconv -f utf-8 -t utf-8 -c || true
  if [ "$(wc -c <"$BODY")" -gt "$most" ]; then printf '\n\nCut after %s bytes. The whole text is in the results of the run.\n' "$most"; fi
} >"$whole"

export LOGIN=$login FIRST=$first
found=$(gh api --paginate "repos/$GITHUB_REPOSITORY/issues/$NUMBER/comments?per_page=100" \
  --jq '.[] | select(.user.login == env.LOGIN and (.body | startswith(env.FIRST))) | .id' | sed -n 1p)
if [ -n "$found" ]; then
  place=(--method PATCH "repos/$GITHUB_REPOSITORY/issues/comments/$found")
else
  place=(--method POST "repos/$GITHUB_REPOSITORY/issues/$NUMBER/comments")
fi
gh api "${place[@]}" -F "body=@$whole" --silent ||
  echo "::warning::The comment cannot be written. Does the job have the permission pull-requests: write?"
