/* Softmax over classes that are sign patterns times a Hadamard matrix, by fast transforms that stay in the cache.

   Class a * size + b, a < forms, is the vector  signs[a][v] * (-1)^(b . v) * scale,  v = 0 ... size - 1; the classes
   from forms * size on are the unit vectors. The logits of one pattern are one fast Walsh-Hadamard transform,
   size * log2(size) additions, and so is the sum of its vectors with given weights.

   LANES embeddings lie side by side, so that every operation is one on vectors of LANES floats, whatever the size. */

#include <stdint.h>
#include <string.h>

#define LANES 16
#define LOWEST -1e30f

typedef float vec __attribute__((vector_size(4 * LANES)));
typedef int32_t ivec __attribute__((vector_size(4 * LANES)));

typedef struct {
    const int8_t *signs;
    int64_t forms, size, num_classes, dim;
    float scale;
} basis;

static inline vec choose(ivec mask, vec yes, vec no) { return (vec)((mask & (ivec)yes) | (~mask & (ivec)no)); }

static inline vec larger(vec x, vec y) { return choose(x > y, x, y); }

/* exp(x) for x <= 0, with a relative error of 2e-7; 0 below -87: 2^n times a polynomial of what is left of x. */
static inline vec exponential(vec x) {
    const float magic = 12582912.0f; /* 1.5 * 2^23: adding it leaves the nearest whole number in the last bits */
    vec shifted = x * 1.44269504f + magic;
    vec n = shifted - magic;
    vec r = x - n * 0.693359375f + n * 2.12194440e-4f;
    vec p = r * (1.0f / 5040) + 1.0f / 720;
    p = p * r + 1.0f / 120;
    p = p * r + 1.0f / 24;
    p = p * r + 1.0f / 6;
    p = p * r + 0.5f;
    p = p * r + 1.0f;
    p = p * r + 1.0f;
    vec power = (vec)(((ivec)shifted + 127) << 23);
    return (vec)((ivec)(p * power) & (x > -87.0f));
}

/* One pass of the transform over index bits h ... h * RADIX - 1, in registers. */
#define PASS(RADIX)                                                                                          \
    for (int64_t start = 0; start < size; start += h * RADIX)                                                \
        for (int64_t j = start; j < start + h; j++) {                                                        \
            vec r[RADIX];                                                                                    \
            for (int i = 0; i < RADIX; i++) r[i] = x[j + i * h];                                             \
            for (int b = 1; b < RADIX; b *= 2)                                                               \
                for (int i = 0; i < RADIX; i++)                                                              \
                    if (!(i & b)) {                                                                          \
                        vec sum = r[i] + r[i + b], difference = r[i] - r[i + b];                             \
                        r[i] = sum, r[i + b] = difference;                                                   \
                    }                                                                                        \
            for (int i = 0; i < RADIX; i++) x[j + i * h] = r[i];                                             \
        }                                                                                                    \
    h *= RADIX

static void transform(vec *x, int64_t size) {
    int64_t h = 1;
    while (h * 16 <= size) { PASS(16); }
    if (h * 8 <= size) { PASS(8); }
    if (h * 4 <= size) { PASS(4); }
    if (h * 2 <= size) { PASS(2); }
}

/* LANES rows side by side; rows beyond the last are zero. */
static void gather(vec *out, const float *rows, int64_t count, int64_t size, int64_t stride) {
    float *o = (float *)out;
    if (count < LANES) memset(o, 0, sizeof(vec) * size);
    for (int64_t r = 0; r < count; r++)
        for (int64_t i = 0; i < size; i++) o[i * LANES + r] = rows[r * stride + i];
}

/* The logits of one block of classes; returns how many classes it has. */
static int64_t block_logits(const basis *b, const vec *z, int64_t block, vec *x) {
    if (block < b->forms) {
        const int8_t *s = b->signs + block * b->size;
        for (int64_t i = 0; i < b->size; i++) x[i] = z[i] * (s[i] * b->scale);
        transform(x, b->size);
    } else {
        memcpy(x, z, sizeof(vec) * b->size);
    }
    int64_t left = b->num_classes - block * b->size;
    return left < b->size ? left : b->size;
}

static vec block_maximum(const vec *x, int64_t count) {
    vec m = x[0];
    for (int64_t i = 1; i < count; i++) m = larger(x[i], m);
    return m;
}

/* Turn logits into exponentials relative to m; return their sum. */
static vec block_exponentials(vec *x, int64_t count, vec m) {
    vec total = {0};
    for (int64_t i = 0; i < count; i++) {
        x[i] = exponential(x[i] - m);
        total += x[i];
    }
    return total;
}

/* mean = mean * shrink + sum_k x_k w_k over a block. */
static void block_combine(const basis *b, vec *mean, vec shrink, int64_t block, vec *x, int64_t count) {
    memset(x + count, 0, sizeof(vec) * (b->size - count));
    if (block < b->forms) {
        const int8_t *s = b->signs + block * b->size;
        transform(x, b->size);
        for (int64_t i = 0; i < b->size; i++) mean[i] = mean[i] * shrink + x[i] * (s[i] * b->scale);
    } else {
        for (int64_t i = 0; i < b->size; i++) mean[i] = mean[i] * shrink + x[i];
    }
}

/* For each row the largest logit m, sum_k exp(z_k - m), the logits of k_named classes and, unless mean is null,
   sum_k exp(z_k - m) w_k. workspace: 3 * size vectors. */
void soft_sums(const basis *b, const float *z, int64_t rows, const int64_t *named, int64_t k_named, float *maximum,
               float *total, float *picked, float *mean, vec *workspace) {
    int64_t blocks = (b->num_classes + b->size - 1) / b->size;
    vec *zs = workspace, *x = zs + b->size, *sums = x + b->size;
    for (int64_t first = 0; first < rows; first += LANES) {
        int64_t count = rows - first < LANES ? rows - first : LANES;
        gather(zs, z + first * b->dim, count, b->size, b->dim);
        memset(sums, 0, sizeof(vec) * b->size);
        vec m = (vec){0} + LOWEST, sum = {0};
        for (int64_t block = 0; block < blocks; block++) {
            int64_t classes = block_logits(b, zs, block, x);
            for (int64_t r = 0; r < count; r++)
                for (int64_t k = 0; k < k_named; k++) {
                    int64_t place = named[(first + r) * k_named + k] - block * b->size;
                    if (place >= 0 && place < classes) picked[(first + r) * k_named + k] = x[place][r];
                }
            vec larger_m = larger(block_maximum(x, classes), m);
            vec shrink = exponential(m - larger_m);
            m = larger_m;
            sum = sum * shrink + block_exponentials(x, classes, m);
            if (mean) block_combine(b, sums, shrink, block, x, classes);
        }
        for (int64_t r = 0; r < count; r++) {
            maximum[first + r] = m[r];
            total[first + r] = sum[r];
            if (mean)
                for (int64_t i = 0; i < b->size; i++) mean[(first + r) * b->dim + i] = sums[i][r];
        }
    }
}

/* Put what is above the last of the k best, of one lane of logits, among them: best first, the first class of equals. */
static void keep_best(float *values, int64_t *classes, int64_t k, const vec *x, int64_t lane, int64_t count,
                      int64_t first_class) {
    for (int64_t i = 0; i < count; i++) {
        float logit = x[i][lane];
        if (logit <= values[k - 1]) continue;
        int64_t place = k - 1;
        for (; place > 0 && values[place - 1] < logit; place--)
            values[place] = values[place - 1], classes[place] = classes[place - 1];
        values[place] = logit, classes[place] = first_class + i;
    }
}

/* For each row the k largest logits, best first, and their classes; and maximum and total as above.
   workspace: 2 * size vectors. values begin at LOWEST. */
void largest(const basis *b, const float *z, int64_t rows, int64_t k, float *values, int64_t *classes, float *maximum,
             float *total, vec *workspace) {
    int64_t blocks = (b->num_classes + b->size - 1) / b->size;
    vec *zs = workspace, *x = zs + b->size;
    for (int64_t first = 0; first < rows; first += LANES) {
        int64_t count = rows - first < LANES ? rows - first : LANES;
        gather(zs, z + first * b->dim, count, b->size, b->dim);
        vec m = (vec){0} + LOWEST, sum = {0};
        for (int64_t block = 0; block < blocks; block++) {
            int64_t here = block_logits(b, zs, block, x);
            vec best = block_maximum(x, here);
            for (int64_t r = 0; r < count; r++)
                if (best[r] > values[(first + r) * k + k - 1])
                    keep_best(values + (first + r) * k, classes + (first + r) * k, k, x, r, here, block * b->size);
            vec larger_m = larger(best, m);
            sum = sum * exponential(m - larger_m) + block_exponentials(x, here, larger_m);
            m = larger_m;
        }
        for (int64_t r = 0; r < count; r++) maximum[first + r] = m[r], total[first + r] = sum[r];
    }
}

/* The logits of one row with up to LANES blocks of classes, a block in each lane; LOWEST where there is no class. */
static void side_by_side(const basis *b, const float *z, int64_t first_block, vec *x) {
    float *o = (float *)x;
    int units = first_block == b->forms; /* they come alone: they need no transform */
    int64_t lanes = units ? 1 : b->forms - first_block;
    if (lanes > LANES) lanes = LANES;
    if (lanes < LANES) memset(o, 0, sizeof(vec) * b->size);
    for (int64_t lane = 0; lane < lanes; lane++) {
        const int8_t *s = b->signs + (first_block + lane) * b->size;
        for (int64_t i = 0; i < b->size; i++) o[i * LANES + lane] = units ? z[i] : z[i] * (s[i] * b->scale);
    }
    if (!units) transform(x, b->size);
    for (int64_t lane = 0; lane < LANES; lane++) {
        int64_t left = lane < lanes ? b->num_classes - (first_block + lane) * b->size : 0;
        for (int64_t i = left < 0 ? 0 : left; i < b->size; i++) o[i * LANES + lane] = LOWEST;
    }
}

/* As largest, one row after the other with LANES blocks of classes side by side: for fewer rows than lanes. */
void largest_of_few(const basis *b, const float *z, int64_t rows, int64_t k, float *values, int64_t *classes,
                    float *maximum, float *total, vec *workspace) {
    int64_t blocks = (b->num_classes + b->size - 1) / b->size;
    for (int64_t row = 0; row < rows; row++) {
        float *v = values + row * k;
        vec m = (vec){0} + LOWEST, sum = {0}, *x = workspace;
        for (int64_t block = 0; block < blocks;) {
            side_by_side(b, z + row * b->dim, block, x);
            vec best = block_maximum(x, b->size);
            for (int64_t lane = 0; lane < LANES; lane++)
                if (best[lane] > v[k - 1])
                    keep_best(v, classes + row * k, k, x, lane, b->size, (block + lane) * b->size);
            vec larger_m = larger(best, m);
            sum = sum * exponential(m - larger_m) + block_exponentials(x, b->size, larger_m);
            m = larger_m;
            block = block < b->forms && block + LANES > b->forms ? b->forms : block + LANES;
        }
        float top = m[0], over_lanes = 0;
        for (int64_t lane = 1; lane < LANES; lane++) top = m[lane] > top ? m[lane] : top;
        vec shares = sum * exponential(m - top);
        for (int64_t lane = 0; lane < LANES; lane++) over_lanes += shares[lane];
        maximum[row] = top, total[row] = over_lanes;
    }
}
