#include "plot.h"
#include "terminal.h"
#include "shown.h"

#include <math.h>
#include <string.h>

#include <remat/report.h>

enum { ROWS = 12, LABEL = 11, WIDEST = 200, PARTS = 4 };

/* A bar for each column, in up to four parts from the bottom up. */
typedef struct bars {
    int width;
    double top;     /* the value of a bar that reaches the top row */
    int label_rows; /* every so many rows one is labelled */
    double parts[WIDEST][PARTS];
    bool cut[WIDEST]; /* the bar goes on above the picture */
} bars;

/* How the parts look: by colour, by shade, or by letter. */
static const char *const colours[PARTS] = {"\033[34m", "\033[33m", "\033[32m", "\033[35m"};
static const char *const shades[PARTS] = {"▒", "█", "▓", "░"};
static const char *const letters[PARTS] = {"x", "s", "y", "w"};
static const char *const part_names[PARTS] = {"inputs", "saved states", "gradients", "workspace"};
static const char *const eighths[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};

typedef struct look {
    bool colour, blocks;
} look;

static double height_of(const bars *picture, int column)
{
    double sum = 0;
    for (int part = 0; part < PARTS; part++)
        sum += picture->parts[column][part];
    return sum;
}

/* The part that a value of the column lies in. */
static int part_at(const bars *picture, int column, double value)
{
    double sum = 0;
    int last = 0;
    for (int part = 0; part < PARTS; part++) {
        sum += picture->parts[column][part];
        if (picture->parts[column][part] > 0) {
            last = part;
            if (value < sum)
                return part;
        }
    }
    return last;
}

/* Less of a cell than this is not drawn. */
#define LEAST_FILLED (1.0 / 16)

/* Columns of a row up to the last one that has something in it: lines do not end in blanks. */
static int filled_width(const bars *picture, int row)
{
    int width = picture->width;
    while (width > 0 && height_of(picture, width - 1) / picture->top * ROWS - row < LEAST_FILLED)
        width--;
    return width;
}

static void print_cell(const bars *picture, look how, int column, int row, const char *empty)
{
    double low = picture->top * row / ROWS, high = picture->top * (row + 1) / ROWS, height = height_of(picture, column);
    double filled = (height - low) / (high - low);
    if (filled < LEAST_FILLED) {
        fputs(empty, stdout);
        return;
    }
    if (row == ROWS - 1 && picture->cut[column]) {
        fputs(how.blocks ? "▲" : "^", stdout);
        return;
    }
    int part = part_at(picture, column, fmin((low + high) / 2, (low + height) / 2));
    const char *cell;
    if (!how.blocks)
        cell = filled >= 0.5 ? letters[part] : ".";
    else if (filled < 1)
        cell = eighths[(int)lround(filled * 8)];
    else
        cell = how.colour ? "█" : shades[part];
    if (how.colour)
        printf("%s%s\033[0m", colours[part], cell);
    else
        fputs(cell, stdout);
}

/* Prints the bars over a line; `mark` is a value with a line across, or negative; `label` names a row's upper edge. */
static void print_bars(const bars *picture, look how, double mark, const char *(*label)(double value, char *text))
{
    int marked = mark < 0 ? -1 : (int)(mark / picture->top * ROWS - 1e-9);
    for (int row = ROWS - 1; row >= 0; row--) {
        char text[64] = "";
        bool named = (row + 1) % picture->label_rows == 0;
        printf("%*s %s", LABEL, named ? label(picture->top * (row + 1) / ROWS, text) : "", how.blocks ? "┤" : "|");
        int width = row == marked ? picture->width : filled_width(picture, row);
        for (int column = 0; column < width; column++)
            print_cell(picture, how, column, row, row == marked ? (how.blocks ? "┄" : "-") : " ");
        putchar('\n');
    }
    char text[64];
    printf("%*s %s", LABEL, label(0, text), how.blocks ? "└" : "+");
    for (int column = 0; column < picture->width; column++)
        fputs(how.blocks ? "─" : "-", stdout);
    putchar('\n');
}

/* Text under the left and the right end of the picture. */
static void print_ends(int width, const char *left, const char *right)
{
    printf("%*s  %s%*s\n", LABEL, "", left, width - (int)strlen(left), right);
}

/* A caret under `column`, with words on the side that has room for them, or below. */
static void print_pointer(int width, int column, const char *words)
{
    int length = (int)strlen(words);
    if (column + 2 + length <= width)
        printf("%*s  %*s %s\n", LABEL, "", column + 1, "^", words);
    else if (length + 1 <= column)
        printf("%*s  %*s ^\n", LABEL, "", column - 1, words);
    else
        printf("%*s  %*s\n%*s  %s\n", LABEL, "", column + 1, "^", LABEL, "", words);
}

static void print_legend(look how, int width, const bool *used)
{
    int column = 0;
    printf("%*s ", LABEL, "");
    for (int part = 0; part < PARTS; part++) {
        int length = (int)strlen(part_names[part]) + 3;
        if (!used[part])
            continue;
        if (column > 0 && column + length > width) {
            printf("\n%*s ", LABEL, "");
            column = 0;
        }
        const char *sample = how.blocks ? (how.colour ? "█" : shades[part]) : letters[part];
        printf(" %s%s%s %s%s", how.colour ? colours[part] : "", sample, how.colour ? "\033[0m" : "", part_names[part],
               column + length + 2 <= width ? " " : "");
        column += length + 1;
    }
    putchar('\n');
}

static look look_of_output(void)
{
    return (look){terminal_has_colours(), terminal_has_blocks()};
}

static int picture_width(void)
{
    return terminal_width() - LABEL - 3;
}

/* ---- memory over time ---- */

static const char *size_label(double value, char *text)
{
    return remat_size_print((uint64_t)llround(value), text);
}

/* Tops of pictures are round: the least of 1, 1.5, 2, 3, 4, 6, 8, 12, ... times a power of two that is enough. */
static double round_top(uint64_t bytes)
{
    double top = 3;
    while (top < (double)bytes)
        top = fmod(log2(top), 1) == 0 ? top * 1.5 : top / 3 * 4;
    return top;
}

static const char *name_of_step(const remat_profile *profile, const remat_plan *plan, uint64_t wanted, char *text);

remat_status plot_memory(const remat_profile *profile, const remat_plan *plan)
{
    const remat_plan_figures *figures = remat_plan_get_figures(plan);
    int width = picture_width();
    remat_memory_column columns[WIDEST];
    size_t used;
    remat_status status = remat_plan_memory(plan, columns, (size_t)width, &used);
    if (status != REMAT_OK || used == 0)
        return status;
    uint64_t peak = figures->schedule.peak_bytes;
    bool budget = figures->has_budget && figures->budget_bytes >= peak && figures->budget_bytes / 2 < peak;
    bars picture = {.width = width, .top = round_top(budget ? figures->budget_bytes : peak)};
    picture.label_rows =
        fmod(log2(picture.top), 1) == 0 ? 3 : 4; /* quarters of a power of two, thirds of three halves */
    bool parts_used[PARTS] = {false};
    int peak_at = 0;
    for (int i = 0; i < width; i++) {
        const remat_memory_column *column = &columns[(size_t)i * used / (size_t)width];
        uint64_t bytes[PARTS] = {column->inputs, column->states, column->gradients, column->workspace};
        for (int part = 0; part < PARTS; part++) {
            picture.parts[i][part] = (double)bytes[part];
            parts_used[part] |= bytes[part] > 0;
        }
        if (column->step == figures->schedule.peak_step && !peak_at)
            peak_at = i;
    }
    look how = look_of_output();
    char size[REMAT_SIZE_TEXT], limit[REMAT_SIZE_TEXT], step[REMAT_STEP_TEXT], count[REMAT_COUNT_TEXT];
    printf("\nmemory over time%s%s\n", budget ? ", the line is the budget of " : "",
           budget ? remat_size_print(figures->budget_bytes, limit) : "");
    print_bars(&picture, how, budget ? (double)figures->budget_bytes : -1, size_label);
    if (figures->schedule.peak_step != REMAT_NOWHERE) {
        name_of_step(profile, plan, figures->schedule.peak_step, step);
        char words[256];
        snprintf(words, sizeof words, "peak %s, %s", remat_size_print(peak, size), shown(step));
        print_pointer(width, peak_at, words);
    }
    snprintf(limit, sizeof limit, "step %s", remat_count_print(figures->schedule.steps, count));
    print_ends(width, "step 0", limit);
    print_legend(how, width, parts_used);
    return REMAT_OK;
}

typedef struct step_search {
    uint64_t left;
    remat_step step;
} step_search;

static remat_status search_step(void *user, remat_step step)
{
    step_search *search = user;
    search->step = step;
    return search->left-- == 0 ? REMAT_CHECK_FAILED : REMAT_OK; /* anything but OK ends the walk */
}

static const char *name_of_step(const remat_profile *profile, const remat_plan *plan, uint64_t wanted, char *text)
{
    step_search search = {.left = wanted};
    remat_plan_walk(plan, search_step, &search);
    return remat_step_print(profile, search.step, text);
}

/* A column shows the largest of its positions. */
static void fill_from(bars *picture, const uint64_t *bytes, size_t count)
{
    for (int i = 0; i < picture->width; i++) {
        size_t first = (size_t)i * count / (size_t)picture->width,
               end = ((size_t)i + 1) * count / (size_t)picture->width;
        uint64_t most = bytes[first];
        for (size_t k = first + 1; k < end; k++)
            most = bytes[k] > most ? bytes[k] : most;
        picture->parts[i][1] = (double)most;
    }
}

void plot_graph_memory(const remat_graph *graph, const remat_graph_plan *plan)
{
    remat_graph_plan_figures figures;
    remat_graph_action action;
    size_t count;
    const uint64_t *bytes = remat_graph_plan_live_bytes(plan, &count);
    remat_graph_plan_get_figures(plan, &figures);
    if (count == 0)
        return;
    const uint64_t peak = figures.peak_bytes;
    const bool budget = figures.has_budget && figures.budget_bytes / 2 < peak;
    bars picture = {.width = picture_width(), .top = round_top(budget ? figures.budget_bytes : peak)};
    picture.label_rows = fmod(log2(picture.top), 1) == 0 ? 3 : 4;
    fill_from(&picture, bytes, count);
    char size[REMAT_SIZE_TEXT], limit[REMAT_SIZE_TEXT], last[REMAT_COUNT_TEXT], words[256], end[40];
    printf("\nmemory over time%s%s\n", budget ? ", the line is the budget of " : "",
           budget ? remat_size_print(figures.budget_bytes, limit) : "");
    print_bars(&picture, look_of_output(), budget ? (double)figures.budget_bytes : -1, size_label);
    const uint32_t number = remat_graph_plan_schedule(plan, &count)[figures.peak_position];
    remat_graph_get_action(graph, number, &action);
    if (action.name)
        snprintf(words, sizeof words, "peak %s, %.200s", remat_size_print(peak, size), shown(action.name));
    else
        snprintf(words, sizeof words, "peak %s, action %u", remat_size_print(peak, size), number);
    print_pointer(picture.width, (int)(figures.peak_position * (uint64_t)picture.width / count), words);
    snprintf(end, sizeof end, "position %s", remat_count_print(count - 1, last));
    print_ends(picture.width, "position 0", end);
}

/* ---- the curve ---- */

static const char *percent_label(double value, char *text)
{
    snprintf(text, 64, value >= 10 || value == 0 ? "+%.0f %%" : "+%.2g %%", value);
    return text;
}

static double overhead(remat_sweep_point point, uint64_t base)
{
    return base ? 100.0 * ((double)point.total_cost - (double)base) / (double)base : 0;
}

/* Tops for percents: 1, 2 or 5 times a power of ten, in thirds: 3, 6, 15, 30, 60, 150, ... */
static double round_percent(double most)
{
    double top = 0.3;
    for (int i = 0; top < most; i++)
        top *= i % 3 == 1 ? 2.5 : 2;
    return top;
}

void plot_curve(const remat_sweep_point *points, size_t count, size_t knee, uint64_t base_cost)
{
    int width = picture_width();
    if (count == 0)
        return;
    remat_sweep_point first = points[0], last = points[count - 1], bend = points[knee];
    double most = overhead(first, base_cost), span = (double)last.peak_bytes - (double)first.peak_bytes;
    /* The last bytes cost most: where they would flatten all else, the picture is cut above the knee. */
    bool cut = most > 4 * overhead(bend, base_cost) && overhead(bend, base_cost) > 0;
    bars picture = {.width = width, .label_rows = 4, .top = round_percent(cut ? 2 * overhead(bend, base_cost) : most)};
    size_t point = 0;
    for (int i = 0; i < width; i++) {
        double peak = (double)first.peak_bytes + span * (i + 0.5) / width;
        while (point + 1 < count && (double)points[point + 1].peak_bytes <= peak)
            point++;
        double value = overhead(points[point], base_cost);
        picture.cut[i] = value > picture.top;
        picture.parts[i][1] = fmin(value, picture.top);
    }
    look how = look_of_output();
    char left[REMAT_SIZE_TEXT], right[REMAT_SIZE_TEXT], at[REMAT_SIZE_TEXT], words[128];
    printf("\ncost over memory, beyond keeping everything");
    if (cut)
        printf("; the least memory costs +%.1f %%", most);
    putchar('\n');
    how.colour = how.colour && how.blocks;
    print_bars(&picture, how, -1, percent_label);
    int column = span > 0 ? (int)(((double)bend.peak_bytes - (double)first.peak_bytes) / span * (width - 1)) : 0;
    snprintf(words, sizeof words, "knee at %s, +%.1f %%", remat_size_print(bend.peak_bytes, at),
             overhead(bend, base_cost));
    print_pointer(width, column, words);
    print_ends(width, remat_size_print(first.peak_bytes, left), remat_size_print(last.peak_bytes, right));
}
