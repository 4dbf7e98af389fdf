/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Programs that are given as an argument, in the languages of awk, sed and
 * jq. Each check returns NULL if the text can only compute and print, else
 * why it might do more or is not understood. They accept the part of each
 * language that all its implementations read alike.
 */

const char *awk_check(const char *text);
const char *sed_check(const char *text);
const char *jq_check(const char *text);

/*
 * The end of a regular expression that began just before `s`: its delimiter,
 * or NULL if it is not closed on its line or if implementations might
 * disagree where it ends (a delimiter or an escape inside brackets).
 */
const char *regex_end(const char *s, char delimiter);
